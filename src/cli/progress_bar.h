// How far a long command is, on standard error: a line that is rewritten on a terminal, elsewhere a line
// every ten seconds.
#ifndef LATTICE_CLI_PROGRESS_BAR_H_
#define LATTICE_CLI_PROGRESS_BAR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace lattice::cli {

// One thread at a time.
class ProgressBar {
 public:
  explicit ProgressBar(std::string name);
  // Wipes the line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Shows NAME and done/total, or what `figures` says of the seconds gone by; and the time left. Cheap to
  // call often: most calls show nothing, and do not ask for the figures.
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
