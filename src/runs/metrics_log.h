// metrics.jsonl: the metrics of a run as JSON lines, in order of steps.
//
// Training lines:   step, loss (nats per token), bits_per_byte, lr, grad_norm, tokens (seen so far),
//                   tokens_per_s, data_wait (seconds that steps waited for tokens, in this session),
//                   memory (bytes in use), elapsed (seconds, over all sessions of the run); of an imitation also
//                   layer_errors: a list with a value per layer, the mean since the line before
// Validation lines: step, valid_loss, valid_bits_per_byte, valid_perplexity, valid_tokens, elapsed, and the
//                   figures of train/memory_figures.h: lists with a value per layer, or null where the memory
//                   has no such figure
// Skipped steps:    step, skipped (the reason), loss and grad_norm as strings, because they may not be
//                   finite, z_score, elapsed
// Rollbacks:        step (the one returned to), rolled_back_from, elapsed
//
// The numbers are also written to TensorBoard event files in tensorboard/ beside it.
#ifndef LATTICE_RUNS_METRICS_LOG_H_
#define LATTICE_RUNS_METRICS_LOG_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "io/append_file.h"
#include "runs/event_file.h"

namespace lattice::runs {

class MetricsLog {
 public:
  // Opens the file for appending. First drops the lines of steps after `last_step`, which will be repeated,
  // and a last line cut short by a crash. Throws Error when the file cannot be written.
  MetricsLog(const std::filesystem::path& path, int64_t last_step);

  // Writes one line, or keeps it until the disk takes it.
  void Write(const nlohmann::ordered_json& line);

  // Throws Error unless all lines are on disk. To be called before a checkpoint is written, because a run that
  // resumes from it does not repeat them. May be called by another thread than Write.
  void Sync() { file_->Sync(); }

 private:
  std::optional<io::AppendFile> file_;
  std::optional<EventFile> events_;
};

}  // namespace lattice::runs

#endif  // LATTICE_RUNS_METRICS_LOG_H_
