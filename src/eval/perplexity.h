// Perplexity of a text, in total and by how much context the model has read.
#ifndef LATTICE_EVAL_PERPLEXITY_H_
#define LATTICE_EVAL_PERPLEXITY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "data/token_bytes.h"
#include "runtime/engine.h"

namespace lattice::eval {

struct PerplexityOptions {
  int64_t context = 512;  // windows of this many tokens, each from the initial state
  bool carry = false;     // carry one state through the whole text; windows then only divide the progress
  int64_t batch = 0;      // windows in a batch; 0: as many as fit into 256 MiB of states, at most 8
  std::function<void(int64_t done, int64_t total)> progress = {};  // tokens; may be empty
};

// Positions [from, to) of a window, counted from 0: predictions from at least `from` + 1 tokens.
struct CurvePoint {
  int64_t from = 0, to = 0;
  double nats = 0;  // per token
  int64_t tokens = 0;
};

struct PerplexityResult {
  int64_t context = 0;
  double nats = 0;  // summed
  int64_t tokens = 0;
  int64_t bytes = 0;              // of the text of those tokens
  std::vector<CurvePoint> curve;  // four points from each power of two to the next
  double seconds = 0;

  double Loss() const;  // nats per token
  double Perplexity() const;
  double BitsPerByte() const;
};

// Used by one thread at a time. Results depend neither on the batch nor on the number of threads.
class PerplexityMeter {
 public:
  PerplexityMeter(std::shared_ptr<const runtime::Model> model, int threads);

  // Predicts each token from those before it in its window; the first token of the text is only read. Tokens
  // at the end that do not fill a window are left out. Throws Error when there is no whole window, or a logit
  // is not finite.
  PerplexityResult Run(std::span<const int32_t> tokens, const data::TokenBytes& token_bytes,
                       const PerplexityOptions& options);

 private:
  int64_t Batch(const PerplexityOptions& options) const;

  std::shared_ptr<const runtime::Model> model_;
  runtime::Engine engine_;
  ThreadPool threads_;
};

// The curve's borders up to `length`: 0, 1, 2, 3, 4, 5, .. 8, 10, 12, 14, 16, 20, ...
std::vector<int64_t> CurveBorders(int64_t length);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_PERPLEXITY_H_
