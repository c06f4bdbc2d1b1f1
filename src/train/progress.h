// The console output of training: a progress bar that is rewritten on a terminal, occasional lines elsewhere.
#ifndef LATTICE_TRAIN_PROGRESS_H_
#define LATTICE_TRAIN_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace lattice::train {

struct StepReport {
  int64_t step = 0;   // steps done
  int64_t steps = 0;  // steps in total
  double loss = 0;    // nats per token
  double bits_per_byte = 0;
  double lr = 0;
  double grad_norm = 0;
  double tokens_per_s = 0;
  double eta_s = 0;
};

// Writes to standard output. Used by one thread at a time.
class Progress {
 public:
  enum class Mode { kAuto, kSilent };
  explicit Progress(Mode mode = Mode::kAuto);

  // Prints a line above the bar.
  void Line(const std::string& text);
  // Updates the bar. Without a terminal, prints a line if `due` and the last one is at least a few seconds
  // old.
  void Step(const StepReport& report, bool due);
  // Ends the bar's line.
  void Finish();

 private:
  using Clock = std::chrono::steady_clock;

  bool silent_;
  bool terminal_;
  bool bar_shown_ = false;
  Clock::time_point last_ = {};
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_PROGRESS_H_
