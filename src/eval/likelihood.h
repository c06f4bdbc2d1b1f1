// Log-likelihoods of continuations. A prefix that several requests share is read once, and the state after it
// is forked.
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
  bool greedy = true;         // greedy decoding would produce the continuation
};

struct LikelihoodOptions {
  bool share = true;  // false: read every request from its start; the results are the same, bit for bit
  int64_t batch = 0;  // items at a time; 0: as many as fit 256 MiB of states, at most 64
  int threads = 0;    // 0: one per core
};

// The requests of one item, and their scores.
struct ScoredItem {
  std::vector<TokenPair> requests = {};
  std::vector<Likelihood> scores = {};
  std::string problem = {};  // why there are no scores; empty: there are
};

// Used by one thread at a time. Results depend neither on the batch nor on the number of threads.
class LikelihoodScorer {
 public:
  LikelihoodScorer(std::shared_ptr<const runtime::Model> model, const LikelihoodOptions& options);

  // The number of items to run together. Items of a batch whose contexts begin alike share that prefix too.
  int64_t batch() const { return batch_; }
  // Sets the scores or the problem of each item; at most batch() items.
  void Run(std::span<ScoredItem* const> items);
  // May be used for other work between the runs.
  ThreadPool& threads() { return threads_; }
  // Tokens that the model has read so far.
  int64_t tokens_read() const { return tokens_read_; }

 private:
  struct Work;

  // Reads the nodes of one level of the prefix tree and scores their predictions. The sessions are kept for
  // the next level.
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
