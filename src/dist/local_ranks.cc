#include "dist/local_ranks.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/stop_signal.h"
#include "dist/network.h"
#include "dist/place.h"

namespace lattice::dist {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr auto kReaping = std::chrono::milliseconds(50);
// The others notice a lost rank within 10 s.
constexpr auto kGrace = std::chrono::seconds(15);

// This process's arguments, as the kernel has them.
std::vector<std::string> Arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::string> arguments;
  for (size_t at = 0; at < all.size(); at = all.find('\0', at) + 1) arguments.emplace_back(all.c_str() + at);
  return arguments;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(int rank, int ranks, int port, int listener, int threads) {
  std::vector<std::string> variables = {
      StrCat("LOCAL_WORLD_SIZE=", ranks),
      StrCat("RANK=", rank),
      StrCat("WORLD_SIZE=", ranks),
      StrCat("LOCAL_RANK=", rank),
      StrCat("MASTER_PORT=", port),
      StrCat("MASTER_ADDR=", kLoopback),
      StrCat(kListenerVariable, "=", listener),
  };
  if (std::getenv("OMP_NUM_THREADS") == nullptr) variables.push_back(StrCat("OMP_NUM_THREADS=", threads));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    const bool ours = std::any_of(variables.begin(), variables.end(),
                                  [&](const std::string& own) { return own.starts_with(name); });
    if (!ours) variables.push_back(text);
  }
  return variables;
}

class Ranks {
 public:
  Ranks(int ranks, int threads) {
    const int listener = Listen(kLoopback, 0);
    for (int rank = 0; rank < ranks; ++rank) Start(rank, ranks, listener, threads);
    ::close(listener);
  }

  int ToTheEnd() {
    while (!running_.empty()) {
      Reap();
      if (stop_.requested() && !told_) Tell(SIGTERM);
      if (code_ != 0 && Clock::now() > deadline_) Tell(SIGKILL);
      std::this_thread::sleep_for(kReaping);
    }
    return code_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void Start(int rank, int ranks, int listener, int threads) {
    std::vector<std::string> arguments = Arguments();
    std::vector<std::string> variables =
        Environment(rank, ranks, PortOf(listener), rank == 0 ? listener : -1, threads);
    if (rank != 0) std::erase_if(variables, [](auto& v) { return v.starts_with(kListenerVariable); });
    const std::vector<char*> argv = Pointers(arguments), envp = Pointers(variables);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    Check(child >= 0, "[dist] rank ", rank, " cannot be started: ", SystemReason(errno));
    if (child == 0) {
      // A group of its own: Ctrl-C reaches the parent only, which tells every rank once. No rank outlives it.
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) ::_exit(1);
      if (rank == 0) ::fcntl(listener, F_SETFD, 0);
      ::execve("/proc/self/exe", argv.data(), envp.data());
      ::_exit(127);
    }
    running_.push_back(child);
  }

  void Reap() {
    int status = 0;
    for (size_t i = 0; i < running_.size();) {
      if (::waitpid(running_[i], &status, WNOHANG) == 0) {
        ++i;
        continue;
      }
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (code == 0 || code_ != 0) continue;
      code_ = code;
      deadline_ = Clock::now() + kGrace;
    }
  }

  void Tell(int signal) {
    told_ = true;
    for (const pid_t child : running_) ::kill(child, signal);
  }

  StopSignal stop_;
  std::vector<pid_t> running_;
  bool told_ = false;
  int code_ = 0;
  Clock::time_point deadline_;
};

}  // namespace

int RunRanks(int ranks, int threads) { return Ranks(ranks, threads).ToTheEnd(); }

}  // namespace lattice::dist
