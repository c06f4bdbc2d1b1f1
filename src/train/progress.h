// What a person sees while a model trains: on a terminal one line that is rewritten, elsewhere a line now and
// then.
#ifndef LATTICE_TRAIN_PROGRESS_H_
#define LATTICE_TRAIN_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace lattice::train {

struct StepReport {
  int64_t step = 0;   // steps done
  int64_t steps = 0;  // steps to do
  double loss = 0;    // nats a token
  double bits_per_byte = 0;
  double lr = 0;
  double grad_norm = 0;
  double tokens_per_s = 0;
  double eta_s = 0;
};

// Writes to standard output. One thread at a time.
class Progress {
 public:
  enum class Mode { kAuto, kSilent };
  explicit Progress(Mode mode = Mode::kAuto);

  // A line of its own, above the bar.
  void Line(const std::string& text);
  // `due`: a line is wanted here; without a terminal it is printed unless the last one is a few seconds
  // young.
  void Step(const StepReport& report, bool due);
  // Leaves the bar's line.
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
