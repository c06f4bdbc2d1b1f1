// Scores continuations in batches: builds a prefix tree of all requests and reads it level by level, forking
// a session wherever the tree branches.
#include "eval/likelihood.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "eval/batch_size.h"
#include "eval/prefix_tree.h"

namespace lattice::eval {
namespace {

constexpr int64_t kMaxItems = 64;
// Tokens and logits of one run of the engine: bounds the memory for logits.
constexpr size_t kMaxRows = 2048;
constexpr size_t kMaxLogits = size_t{16} << 20;

using runtime::Want;

struct Query {
  ScoredItem* item;
  size_t request;
  std::vector<int32_t> tokens;   // what the model reads: all but the continuation's last
  std::vector<RowScore> scores;  // one per token of the continuation

  const TokenPair& pair() const { return item->requests[request]; }
  // The position whose logits predict the first token of the continuation.
  size_t first() const { return pair().context.size() - 1; }
};

}  // namespace

struct LikelihoodScorer::Work {
  std::vector<Query> queries;
  std::vector<TreeNode> nodes;
  std::vector<std::optional<runtime::Session>> sessions;  // of each node, while it is needed
  std::vector<size_t> waiting;                            // number of children that have not forked yet

  Want WantOf(const TreeNode& node) const {
    Want want = Want::kNone;
    for (const size_t query : node.sequences) {
      const size_t first = queries[query].first();
      if (first + 1 < node.end) return Want::kAll;
      if (first + 1 == node.end) want = Want::kLast;
    }
    return want;
  }

  // The session in which `node` starts: a fork of its parent's, which the last child takes over.
  runtime::Session Begin(size_t node, const std::shared_ptr<const runtime::Model>& model) {
    if (nodes[node].parent < 0) return runtime::Session(model);
    const auto parent = static_cast<size_t>(nodes[node].parent);
    if (--waiting[parent] > 0) return sessions[parent]->Fork();
    runtime::Session taken = std::move(*sessions[parent]);
    sessions[parent].reset();
    return taken;
  }
};

LikelihoodScorer::LikelihoodScorer(std::shared_ptr<const runtime::Model> model,
                                   const LikelihoodOptions& options)
    : model_(std::move(model)),
      engine_(model_, options.threads),
      threads_(options.threads),
      share_(options.share),
      batch_(options.batch) {
  if (batch_ == 0) {
    // An item needs about five states: one for each of four choices, and the one they are forked from.
    const int64_t bytes = 5 * runtime::Session(model_).Bytes();
    batch_ = BatchOfStates(bytes, kMaxItems);
  }
}

void LikelihoodScorer::Run(std::span<ScoredItem* const> items) {
  Work work;
  for (ScoredItem* item : items) {
    item->scores.assign(item->requests.size(), {});
    for (size_t i = 0; i < item->requests.size(); ++i) {
      const TokenPair& pair = item->requests[i];
      Query query{item, i, pair.context, std::vector<RowScore>(pair.continuation.size())};
      query.tokens.insert(query.tokens.end(), pair.continuation.begin(), pair.continuation.end() - 1);
      work.queries.push_back(std::move(query));
    }
  }
  std::vector<TreeSequence> sequences;
  for (const Query& query : work.queries) sequences.push_back({query.tokens, query.pair().context.size()});
  work.nodes = MakePrefixTree(sequences, share_);
  work.sessions.resize(work.nodes.size());
  work.waiting.assign(work.nodes.size(), 0);
  int64_t levels = 0;
  for (const TreeNode& node : work.nodes) {
    levels = std::max(levels, node.level + 1);
    if (node.parent >= 0) ++work.waiting[static_cast<size_t>(node.parent)];
  }
  for (int64_t level = 0; level < levels; ++level) ReadLevel(work, level);
  for (const Query& query : work.queries) {
    Likelihood& result = query.item->scores[query.request];
    for (const RowScore& score : query.scores) {
      result.log_likelihood += score.log_prob;
      result.greedy = result.greedy && score.greedy;
    }
  }
}

void LikelihoodScorer::ReadLevel(Work& work, int64_t level) {
  const size_t max_rows =
      std::clamp<size_t>(kMaxLogits / static_cast<size_t>(model_->config().vocab_size), 64, kMaxRows);
  std::vector<size_t> chosen;
  size_t rows = 0;
  const auto flush = [&] {
    if (chosen.empty()) return;
    std::vector<runtime::Feed> feeds;
    for (const size_t at : chosen) {
      const TreeNode& node = work.nodes[at];
      work.sessions[at] = work.Begin(at, model_);
      const std::span<const int32_t> tokens = work.queries[node.sequences.front()].tokens;
      feeds.push_back(
          {&*work.sessions[at], tokens.subspan(node.begin, node.end - node.begin), work.WantOf(node)});
    }
    engine_.Run(feeds);
    for (size_t i = 0; i < chosen.size(); ++i) {
      Score(work, chosen[i], engine_.Logits(i));
      if (work.waiting[chosen[i]] == 0) work.sessions[chosen[i]].reset();
    }
    tokens_read_ += static_cast<int64_t>(rows);
    chosen.clear();
    rows = 0;
  };
  for (size_t at = 0; at < work.nodes.size(); ++at) {
    const TreeNode& node = work.nodes[at];
    if (node.level != level) continue;
    if (rows > 0 && rows + node.end - node.begin > max_rows) flush();
    chosen.push_back(at);
    rows += node.end - node.begin;
  }
  flush();
}

void LikelihoodScorer::Score(Work& work, size_t at, std::span<const float> logits) {
  const TreeNode& node = work.nodes[at];
  const auto classes = static_cast<size_t>(model_->config().vocab_size);
  for (const size_t index : node.sequences) {
    Query& query = work.queries[index];
    if (query.first() >= node.end) continue;
    // `logits` covers the last positions of the node.
    const size_t from = std::max(query.first(), node.begin), count = node.end - from;
    const std::span<const int32_t> targets = query.pair().continuation;
    try {
      ScoreRows(logits.last(count * classes), targets.subspan(from - query.first(), count),
                static_cast<int64_t>(classes), threads_,
                std::span(query.scores).subspan(from - query.first(), count));
    } catch (const Error& error) {
      query.item->problem = error.what();
    }
  }
}

}  // namespace lattice::eval
