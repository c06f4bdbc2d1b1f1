#include "cli/progress_bar.h"

#include <unistd.h>

#include <iostream>

#include "base/error.h"
#include "base/format.h"

namespace lattice::cli {
namespace {

constexpr double kBarSeconds = 0.1;
constexpr double kLineSeconds = 10;
constexpr int64_t kBarWidth = 24;

}  // namespace

ProgressBar::ProgressBar(std::string name)
    : name_(std::move(name)),
      terminal_(::isatty(STDERR_FILENO) != 0),
      began_(Clock::now()),
      last_(terminal_ ? Clock::time_point{} : began_) {}

ProgressBar::~ProgressBar() {
  if (shown_ && terminal_) std::cerr << "\r\033[K" << std::flush;
}

void ProgressBar::Show(int64_t done, int64_t total) {
  Show(done, total, [&](double) { return StrCat(Grouped(done), "/", Grouped(total)); });
}

void ProgressBar::Show(int64_t done, int64_t total, const std::function<std::string(double)>& figures) {
  const Clock::time_point now = Clock::now();
  const double age = std::chrono::duration<double>(now - last_).count();
  if (total <= 0 || age < (terminal_ ? kBarSeconds : kLineSeconds)) return;
  last_ = now;
  shown_ = true;
  const double elapsed = std::chrono::duration<double>(now - began_).count();
  const double left = elapsed * static_cast<double>(total - done) / static_cast<double>(done > 0 ? done : 1);
  const std::string line = StrCat(name_, "  ", figures(elapsed), "  ", DurationText(left), " left");
  if (!terminal_) {
    std::cerr << line << std::endl;
    return;
  }
  const auto filled = static_cast<size_t>(kBarWidth * done / total);
  std::cerr << "\r\033[K" << line << "  [" << std::string(filled, '=')
            << std::string(static_cast<size_t>(kBarWidth) - filled, ' ') << "]" << std::flush;
}

}  // namespace lattice::cli
