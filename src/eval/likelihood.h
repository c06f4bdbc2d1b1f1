// Log-likelihoods of continuations. What several requests begin with is read once, and the state behind it
// forked.
#ifndef LATTICE_EVAL_LIKELIHOOD_H_
#define LATTICE_EVAL_LIKELIHOOD_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "eval/row_scores.h"
#include "eval/token_pair.h"
#include "runtime/engine.h"

namespace lattice::eval {

struct Likelihood {
  double log_likelihood = 0;  // nats, summed over the continuation
  bool greedy = true;         // greedy decoding gives the continuation
};

struct LikelihoodOptions {
  bool share = true;  // false: every request from the start; the results are the same, bit for bit
  int64_t batch = 0;  // items at a time; 0: as many as fit 256 MiB of states, at most 64
  int threads = 0;    // 0: one per core
};

// The requests of one item, and what became of them.
struct ScoredItem {
  std::vector<TokenPair> requests = {};
  std::vector<Likelihood> scores = {};
  std::string problem = {};  // not empty: no scores, and why
};

// One thread at a time. Results depend neither on the batch nor on the number of threads.
class LikelihoodScorer {
 public:
  LikelihoodScorer(std::shared_ptr<const runtime::Model> model, const LikelihoodOptions& options);

  // Items that go through the model together. Neighbours with contexts that begin alike share them too.
  int64_t batch() const { return batch_; }
  // Fills the scores or the problem of each; at most batch() items.
  void Run(std::span<ScoredItem* const> items);
  // For work between the runs.
  ThreadPool& threads() { return threads_; }
  // Tokens that the model has read so far.
  int64_t tokens_read() const { return tokens_read_; }

 private:
  struct Work;

  // Reads the nodes of one level and scores what they predict. The sessions stay for the next level.
  void ReadLevel(Work& work, int64_t level);
  void Score(Work& work, size_t node, std::span<const float> logits);

  std::shared_ptr<const runtime::Model> model_;
  runtime::Engine engine_;
  ThreadPool threads_;
  bool share_;
  int64_t batch_;
  int64_t tokens_read_ = 0;
};

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_LIKELIHOOD_H_
