// Prints the progress of training: a bar on a terminal, occasional lines elsewhere.
#include "train/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/format.h"

namespace lattice::train {
namespace {

constexpr double kBarSeconds = 0.1;
constexpr double kLineSeconds = 3;
constexpr int64_t kBarWidth = 20;

std::string Bar(const StepReport& report) {
  const int64_t filled = kBarWidth * report.step / report.steps;
  return StrCat("[", std::string(static_cast<size_t>(filled), '='),
                std::string(static_cast<size_t>(kBarWidth - filled), ' '), "]");
}

// The most important figures first, because a narrow terminal cuts off the end.
std::string Figures(const StepReport& report) {
  return StrCat("step ", report.step, "/", report.steps, "  loss ", Fixed(report.loss, 3), "  ",
                Fixed(report.bits_per_byte, 3), " bits/byte  ", CountText(report.tokens_per_s),
                " tok/s  ETA ", DurationText(report.eta_s), "  lr ", Short(report.lr, 2), "  |g| ",
                Short(report.grad_norm, 2));
}

// Cuts the line to the width of the terminal: a wrapped line could not be rewritten.
std::string FitTerminal(std::string line) {
  struct winsize size = {};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  line.resize(std::min(line.size(), static_cast<size_t>(known ? size.ws_col - 1 : 79)));
  return line;
}

}  // namespace

Progress::Progress(Mode mode)
    : silent_(mode == Mode::kSilent), terminal_(!silent_ && ::isatty(STDOUT_FILENO) != 0) {}

void Progress::Line(const std::string& text) {
  if (silent_) return;
  if (bar_shown_) std::cout << "\r\033[K";
  bar_shown_ = false;
  std::cout << text << std::endl;
}

void Progress::Step(const StepReport& report, bool due) {
  if (silent_) return;
  const Clock::time_point now = Clock::now();
  const double age = std::chrono::duration<double>(now - last_).count();
  const bool last = report.step == report.steps;
  if (terminal_ && (age >= kBarSeconds || last)) {
    std::cout << "\r\033[K" << FitTerminal(Figures(report) + "  " + Bar(report)) << std::flush;
    bar_shown_ = true;
    last_ = now;
  } else if (!terminal_ && (last || (due && age >= kLineSeconds))) {
    std::cout << Figures(report) << std::endl;
    last_ = now;
  }
}

void Progress::Finish() {
  if (bar_shown_) std::cout << std::endl;
  bar_shown_ = false;
}

}  // namespace lattice::train
