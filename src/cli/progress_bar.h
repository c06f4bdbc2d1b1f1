// The progress of a long command, on standard error: a line that is rewritten on a terminal, a line every ten
// seconds elsewhere.
#ifndef LATTICE_CLI_PROGRESS_BAR_H_
#define LATTICE_CLI_PROGRESS_BAR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace lattice::cli {

// Used by one thread at a time.
class ProgressBar {
 public:
  explicit ProgressBar(std::string name);
  // Clears the line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Shows NAME, done/total or the text that `figures` returns for the elapsed seconds, and the time left.
  // Cheap to call often: most calls print nothing and do not call `figures`.
  void Show(int64_t done, int64_t total);
  void Show(int64_t done, int64_t total, const std::function<std::string(double)>& figures);

 private:
  using Clock = std::chrono::steady_clock;

  std::string name_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point began_, last_;
};

}  // namespace lattice::cli

#endif  // LATTICE_CLI_PROGRESS_BAR_H_
