// The measurements of `./lattice bench decode`.
#ifndef LATTICE_BENCH_DECODE_FIGURES_H_
#define LATTICE_BENCH_DECODE_FIGURES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/model.h"

namespace lattice::bench {

struct DecodeFigures {
  int64_t weight_bytes = 0;        // bytes of weights that a token reads
  int64_t session_bytes = 0;       // of an empty session
  int64_t last_session_bytes = 0;  // after the last context
  // Bytes per second when reading a buffer of weight_bytes with the same threads, measured alternately with
  // the tokens of the first context.
  double read_bandwidth = 0;
  std::vector<std::pair<int64_t, double>> decode;  // context -> tokens per second of one session
  // Time of a token after the last context, relative to one in an empty session. The two are measured
  // alternately, so that other load on the machine affects both.
  double last_context_time = 1;
  std::vector<std::pair<int64_t, double>> batch;  // sessions -> tokens per second of all together
  double product_tokens = 0;                      // upper bound of tokens per second by product_rate
  double prefill = 0;                             // tokens per second of a 512-token prompt
  double product_rate = 0;        // floating-point operations per second of matrix products alone
  double prefill_rate = 0;        // the same in the prefill, counting matrix products only
  double first_token = 0;         // seconds from a 512-token prompt to the first logits
  double first_token_cached = 0;  // the same with its state in the prefix cache

  // The fraction of the memory bandwidth that decoding uses, at the first context.
  double BandwidthShare() const {
    return decode.empty() ? 0 : decode[0].second * static_cast<double>(weight_bytes) / read_bandwidth;
  }
};

struct DecodeBenchOptions {
  int threads = 0;
  double seconds = 1;  // per figure
  std::vector<int64_t> contexts = {0, 1024, 32768};
  std::vector<int64_t> batches = {1, 2, 4, 8, 16, 32, 64};
};

DecodeFigures MeasureDecode(std::shared_ptr<const runtime::Model> model, const DecodeBenchOptions& options);

}  // namespace lattice::bench

#endif  // LATTICE_BENCH_DECODE_FIGURES_H_
