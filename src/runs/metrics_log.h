// metrics.jsonl: what happened in a run, one JSON object a line, in order of steps.
//
// Training lines:   step, loss (nats a token), bits_per_byte, lr, grad_norm, tokens (seen so far),
// tokens_per_s,
//                   elapsed (seconds, over all sessions of the run)
//                   data_wait (seconds that steps waited for tokens, this session), memory (bytes in use)
// Validation lines: step, valid_loss, valid_bits_per_byte, valid_perplexity, valid_tokens, elapsed, and lists
//                   with a value per layer: train/memory_figures.h; null: the memory has no such figure
// Skipped steps:    step, skipped (why), loss and grad_norm as text, for they may be no numbers, z_score
// Rollbacks:        step (gone back to), rolled_back_from
//
// The numbers also go to TensorBoard's event files, in tensorboard/ beside it.
#ifndef LATTICE_RUNS_METRICS_LOG_H_
#define LATTICE_RUNS_METRICS_LOG_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "runs/event_file.h"

namespace lattice::runs {

class MetricsLog {
 public:
  // Opens for appending and first drops lines of steps after `last_step`: they will be made again. A line cut
  // short by a crash is dropped too. Throws Error when the file cannot be written.
  MetricsLog(const std::filesystem::path& path, int64_t last_step);

  // Writes one line and hands it to the system. Errors of writing are not the run's end: the log is a
  // by-product.
  void Write(const nlohmann::ordered_json& line);

 private:
  std::ofstream file_;
  bool broken_ = false;  // the last line may be cut short
  std::optional<EventFile> events_;
};

}  // namespace lattice::runs

#endif  // LATTICE_RUNS_METRICS_LOG_H_
