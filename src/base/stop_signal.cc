#include "base/stop_signal.h"

#include <unistd.h>

#include <array>
#include <csignal>

namespace lattice {
namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

volatile std::sig_atomic_t stop_requested = 0;
std::array<struct sigaction, kSignals.size()> previous;

void OnSignal(int signal) {
  if (stop_requested != 0) ::_exit(128 + signal);
  stop_requested = 1;
}

}  // namespace

StopSignal::StopSignal() {
  stop_requested = 0;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &previous[i]);
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &previous[i], nullptr);
}

bool StopSignal::requested() const { return stop_requested != 0; }

}  // namespace lattice
