#include "eval/run_task.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "eval/metrics.h"

namespace lattice::eval {
namespace {

// Adds up what the items of one task gave.
class Tally {
 public:
  explicit Tally(const TaskInfo& task) : task_(task) {}

  void Add(const Item& item, const ScoredItem& scored) {
    if (task_.choices) {
      const Outcome outcome = Judge(item, scored.scores);
      acc_.push_back(outcome.acc);
      acc_norm_.push_back(outcome.acc_norm);
      acc_bytes_.push_back(outcome.acc_bytes);
    } else {
      acc_.push_back(scored.scores.front().greedy);
      nats_.push_back(-scored.scores.front().log_likelihood);
    }
  }

  std::vector<std::pair<std::string, double>> Figures() const {
    std::vector<std::pair<std::string, double>> out;
    if (acc_.empty()) return out;
    const auto add = [&](const std::string& name, const std::vector<double>& values) {
      const Mean mean = MeanOf(values);
      out.emplace_back(name, mean.value);
      out.emplace_back(name + "_stderr", mean.stderr_);
    };
    add("acc", acc_);
    if (task_.choices && task_.name != "winogrande") {
      add("acc_norm", acc_norm_);
      add("acc_bytes", acc_bytes_);
    }
    if (!task_.choices) {
      const Mean nats = MeanOf(nats_);
      out.emplace_back("perplexity", std::exp(nats.value));
      // The delta method: the deviation of exp(x) is exp(x) times that of x.
      out.emplace_back("perplexity_stderr", std::exp(nats.value) * nats.stderr_);
    }
    return out;
  }

 private:
  const TaskInfo& task_;
  std::vector<double> acc_, acc_norm_, acc_bytes_, nats_;
};

nlohmann::ordered_json DumpLine(const TaskInfo& task, const Item& item, const ScoredItem& scored) {
  nlohmann::ordered_json line = {{"task", task.name}, {"index", item.index}};
  bool one_context = true;
  for (const Request& request : item.requests)
    one_context = one_context && request.context == item.requests.front().context;
  std::vector<std::string> contexts, continuations;
  std::vector<double> likelihoods;
  std::vector<bool> greedy;
  for (size_t i = 0; i < item.requests.size(); ++i) {
    contexts.push_back(item.requests[i].context);
    continuations.push_back(item.requests[i].continuation);
    likelihoods.push_back(scored.scores[i].log_likelihood);
    greedy.push_back(scored.scores[i].greedy);
  }
  if (one_context) {
    line["context"] = contexts.front();
  } else {
    line["context"] = contexts;
  }
  line["continuations"] = continuations;
  line["loglikelihoods"] = likelihoods;
  line["greedy"] = greedy;
  line["gold"] = item.gold;
  return line;
}

// The item's requests as tokens; a problem when one cannot be.
ScoredItem Prepare(const Item& item, const text::Tokenizer& tokenizer, const TaskOptions& options,
                   bool& truncated) {
  ScoredItem out;
  try {
    for (const Request& request : item.requests) {
      out.requests.push_back(EncodePair(tokenizer, request.context, request.continuation, options.add_bos));
      truncated |= Truncate(out.requests.back(), options.max_length);
    }
  } catch (const Error& error) {
    out.requests.clear();
    out.problem = error.what();
  }
  return out;
}

// The items that can be scored, those whose contexts begin alike side by side: a batch reads what they share
// once.
std::vector<ScoredItem*> Neighbours(std::vector<ScoredItem>& items) {
  std::vector<ScoredItem*> order;
  for (ScoredItem& item : items) {
    if (item.problem.empty()) order.push_back(&item);
  }
  std::stable_sort(order.begin(), order.end(), [](const ScoredItem* a, const ScoredItem* b) {
    return a->requests.front().context < b->requests.front().context;
  });
  return order;
}

}  // namespace

TaskResult RunTask(const TaskInfo& task, TaskItems read, const text::Tokenizer& tokenizer,
                   LikelihoodScorer& scorer, const TaskOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  const int64_t read_before = scorer.tokens_read();
  TaskResult result;
  result.bad = std::move(read.bad);
  std::vector<ScoredItem> scored;
  for (const Item& item : read.items) {
    bool truncated = false;
    scored.push_back(Prepare(item, tokenizer, options, truncated));
    result.truncated += truncated && scored.back().problem.empty();
  }
  const std::vector<ScoredItem*> order = Neighbours(scored);
  const auto total = static_cast<int64_t>(order.size());
  for (int64_t first = 0; first < total; first += scorer.batch()) {
    const int64_t count = std::min(scorer.batch(), total - first);
    scorer.Run(std::span(order).subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
    if (options.progress) options.progress(first + count, total);
  }
  Tally tally(task);
  for (size_t i = 0; i < scored.size(); ++i) {
    const Item& item = read.items[i];
    if (!scored[i].problem.empty()) {
      result.bad.push_back({item.index, StrCat(read.file.string(), ":", item.line, ": ", scored[i].problem)});
      continue;
    }
    ++result.items;
    tally.Add(item, scored[i]);
    if (options.dump) options.dump(DumpLine(task, item, scored[i]));
  }
  std::sort(result.bad.begin(), result.bad.end(),
            [](const BadItem& a, const BadItem& b) { return a.index < b.index; });
  result.figures = tally.Figures();
  result.tokens = scorer.tokens_read() - read_before;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

}  // namespace lattice::eval
