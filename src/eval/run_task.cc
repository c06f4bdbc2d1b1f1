// Runs a zero-shot task: tokenises its items, orders them so that batches share prefixes, scores them, and
// sums up the results.
#include "eval/run_task.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "eval/outcomes.h"

namespace lattice::eval {
namespace {

double Since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// Sums up the outcomes of a task's items.
class Tally {
 public:
  explicit Tally(const TaskInfo& task) : task_(task) {}

  void Add(const Item& item, const ScoredItem& scored) {
    if (task_.choices) {
      const Outcome outcome = OutcomeOf(item, scored.scores);
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

// Tokenises the item's requests; sets the problem if one cannot be.
ScoredItem Prepare(const Item& item, const text::Tokenizer& tokenizer, const TaskOptions& options,
                   bool& truncated) {
  ScoredItem out;
  PairEncoder encoder(tokenizer, options.add_bos);
  try {
    for (const Request& request : item.requests) {
      out.requests.push_back(encoder.Encode(request.context, request.continuation));
      truncated |= Truncate(out.requests.back(), options.max_length);
    }
  } catch (const Error& error) {
    out.requests.clear();
    out.problem = error.what();
  }
  return out;
}

std::vector<ScoredItem> PrepareAll(const std::vector<Item>& items, const text::Tokenizer& tokenizer,
                                   const TaskOptions& options, ThreadPool& threads, int64_t& truncated) {
  std::vector<ScoredItem> scored(items.size());
  std::atomic<int64_t> count = 0;
  threads.For(static_cast<int64_t>(items.size()), 16, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      bool cut = false;
      scored[i] = Prepare(items[i], tokenizer, options, cut);
      count += cut && scored[i].problem.empty();
    }
  });
  truncated = count;
  return scored;
}

// The items that can be scored, sorted so that those whose contexts begin alike are neighbours: a batch reads
// a shared prefix once.
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
  std::vector<ScoredItem> scored =
      PrepareAll(read.items, tokenizer, options, scorer.threads(), result.truncated);
  const std::vector<ScoredItem*> order = Neighbours(scored);
  result.prepare_seconds = Since(began);
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
  result.seconds = Since(began);
  return result;
}

}  // namespace lattice::eval
