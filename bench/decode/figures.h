// What `lattice-run bench` measures.
#ifndef LATTICE_BENCH_DECODE_FIGURES_H_
#define LATTICE_BENCH_DECODE_FIGURES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/model.h"

namespace lattice::bench {

struct DecodeFigures {
  int64_t weight_bytes = 0;        // that a token reads
  int64_t session_bytes = 0;       // of an empty session
  int64_t last_session_bytes = 0;  // behind the last context
  // Bytes a second, reading a buffer of weight_bytes with the same threads, in turn with the tokens of the
  // first context.
  double read_bandwidth = 0;
  std::vector<std::pair<int64_t, double>> decode;  // context -> tokens a second of one session
  // Time of a token behind the last context against one of an empty session, the two taking turns: what else
  // the machine does meets both.
  double last_context_time = 1;
  std::vector<std::pair<int64_t, double>> batch;  // sessions -> tokens a second of all together
  double product_tokens = 0;                      // the most tokens a second that product_rate allows
  double prefill = 0;                             // tokens a second of a 512-token prompt
  double product_rate = 0;        // floating-point operations a second of the matrix products alone
  double prefill_rate = 0;        // of the prompt, counting the products only
  double first_token = 0;         // seconds from a 512-token prompt to the first logits
  double first_token_cached = 0;  // the same with its state in the prefix cache

  // Of what the bandwidth allows, at the first context.
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
