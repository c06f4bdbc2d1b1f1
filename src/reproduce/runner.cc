// A scheduler of child processes: starts the commands of each run, several runs at a time, and handles
// signals and failures.
#include "reproduce/runner.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/error.h"
#include "base/format.h"
#include "io/directory.h"
#include "io/file.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPoll = std::chrono::milliseconds(50);
// Occurs in the errors of the trainer and of mqar about a loss that is not finite.
constexpr std::string_view kNotFinite = "not finite";
// Occurs in the error of a run whose directory is still locked by a process that has lost its claim.
constexpr std::string_view kLocked = "another process is ";
// Between two looks at runs that others hold.
constexpr auto kOthers = std::chrono::milliseconds(500);

struct Child {
  const Run* run = nullptr;
  std::vector<Command> commands;
  size_t next = 0;  // index of the command after the running one
  pid_t pid = -1;
  bool lost = false;  // another process has taken the run over
  Clock::time_point began = Clock::now();
};

fs::path ErrorFile(const RunStore& store, const Run& run) { return store.Work(run) / "errors.txt"; }

// The child's side of fork, up to exec: uses only async-signal-safe calls.
[[noreturn]] void ExecChild(char* const* args, int output, int errors, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  // Ctrl-C reaches the whole process group; children block it, and get a single SIGTERM from the parent.
  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  ::sigprocmask(SIG_BLOCK, &interrupts, nullptr);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execv("/proc/self/exe", args);
  ::_exit(127);
}

pid_t Start(const Command& command, const fs::path& error_file) {
  io::MakeDirectories(command.output.parent_path());
  const auto open = [](const fs::path& path) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    Check(file >= 0, "[reproduce] cannot write ", path.string(), ": ", SystemReason(errno));
    return file;
  };
  const int output = open(command.output), errors = open(error_file);
  std::vector<std::string> words = {"lattice"};
  words.insert(words.end(), command.args.begin(), command.args.end());
  std::vector<char*> args;
  for (std::string& word : words) args.push_back(word.data());
  args.push_back(nullptr);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) ExecChild(args.data(), output, errors, parent);
  ::close(output);
  ::close(errors);
  Check(pid > 0, "[reproduce] cannot start a process: ", SystemReason(errno));
  return pid;
}

class Runner {
 public:
  Runner(const RunStore& store, const std::vector<Run>& runs, const RunnerOptions& options)
      : store_(store), options_(options) {
    for (const Run& run : runs) {
      if (!store.IsDone(run)) todo_.push_back(&run);
    }
    count_ = todo_.size();
  }

  Outcome Work() {
    while (!stopping_ || !children_.empty()) {
      if (!stopping_ && options_.stop()) Stop();
      if (options_.claims != nullptr) DropLostRuns();
      while (!stopping_ && children_.size() < static_cast<size_t>(options_.jobs)) {
        const Run* run = NextRun();
        if (run == nullptr) break;
        Launch(*run);
      }
      if (children_.empty() && todo_.empty()) break;
      ReapChildren();
      std::this_thread::sleep_for(kPoll);
    }
    if (stopping_) return Outcome::kStopped;
    return failed_ ? Outcome::kFailed : Outcome::kDone;
  }

 private:
  // Takes the first run that this process may make off the list; null: there is none now.
  const Run* NextRun() {
    if (options_.claims == nullptr) {
      if (todo_.empty()) return nullptr;
      return TakeOff(todo_.begin());
    }
    if (Clock::now() < next_look_) return nullptr;
    for (auto at = todo_.begin(); at != todo_.end();) {
      const std::string& id = (*at)->id;
      const bool held = !store_.IsDone(**at) && options_.claims->Take(id);
      // Between the first look and the claim, another may have finished it.
      if (held && !store_.IsDone(**at)) return TakeOff(at);
      options_.claims->Release(id);
      at = store_.IsDone(**at) ? todo_.erase(at) : at + 1;
    }
    next_look_ = Clock::now() + kOthers;
    return nullptr;
  }

  const Run* TakeOff(std::vector<const Run*>::iterator at) {
    const Run* run = *at;
    todo_.erase(at);
    return run;
  }

  // Ends the children whose runs others have taken over: this machine was away for longer than a lease.
  void DropLostRuns() {
    for (const std::string& id : options_.claims->Renew()) {
      for (Child& child : children_) {
        if (child.run->id != id) continue;
        options_.report(StrCat(id, " was taken over by another process"));
        child.lost = true;
        ::kill(child.pid, SIGKILL);
      }
    }
  }

  void Launch(const Run& run) {
    Child child{&run, store_.Commands(run)};
    StartNext(child);
    children_.push_back(std::move(child));
  }

  void StartNext(Child& child) {
    child.pid = Start(child.commands[child.next++], ErrorFile(store_, *child.run));
  }

  void Stop() {
    stopping_ = true;
    todo_.clear();
    for (const Child& child : children_) ::kill(child.pid, SIGTERM);
  }

  void ReapChildren() {
    std::erase_if(children_, [&](Child& child) {
      int status = 0;
      if (::waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
      if (child.lost) todo_.push_back(child.run);
      if (stopping_ || child.lost) return true;
      const bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      if (ok && child.next < child.commands.size()) {
        StartNext(child);
        return false;
      }
      End(child, ok);
      if (options_.claims != nullptr) options_.claims->Release(child.run->id);
      return true;
    });
  }

  void End(const Child& child, bool ok) {
    const Run& run = *child.run;
    const std::string message = ok ? "" : io::ReadFile(ErrorFile(store_, run));
    const bool diverged = message.find(kNotFinite) != std::string::npos;
    if (options_.claims != nullptr && message.find(kLocked) != std::string::npos) {
      todo_.push_back(&run);
      next_look_ = Clock::now() + kOthers;
      return;
    }
    ++ended_;
    const double seconds = std::chrono::duration<double>(Clock::now() - child.began).count();
    const std::string place = StrCat("[", ended_, "/", count_, "] ", run.id);
    if (!ok && !diverged) {
      failed_ = true;
      options_.report(StrCat(place, " failed: ", message, "  ", store_.ShownCommand(run)));
      return;
    }
    try {
      store_.Finish(run, diverged ? message.substr(0, message.find('\n')) : "");
    } catch (const Error& error) {
      failed_ = true;
      options_.report(StrCat(place, " ", error.what()));
      return;
    }
    options_.report(StrCat(place, diverged ? " diverged" : " done", " in ", DurationText(seconds)));
  }

  const RunStore& store_;
  const RunnerOptions& options_;
  std::vector<const Run*> todo_;
  std::vector<Child> children_;
  Clock::time_point next_look_ = {};
  size_t count_ = 0, ended_ = 0;
  bool stopping_ = false, failed_ = false;
};

}  // namespace

Outcome MakeRuns(const RunStore& store, const std::vector<Run>& runs, const RunnerOptions& options) {
  return Runner(store, runs, options).Work();
}

Outcome RunCommand(const Command& command, const fs::path& errors, const RunnerOptions& options) {
  const pid_t pid = Start(command, errors);
  bool stopping = false;
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) != pid) {
    if (!stopping && options.stop()) {
      stopping = true;
      ::kill(pid, SIGTERM);
    }
    std::this_thread::sleep_for(kPoll);
  }
  if (stopping) return Outcome::kStopped;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Outcome::kDone;
  std::string text = io::ReadFile(errors);
  while (text.ends_with('\n')) text.pop_back();
  const size_t line = text.rfind('\n');
  options.report(StrCat("failed: ", text.substr(line == std::string::npos ? 0 : line + 1)));
  return Outcome::kFailed;
}

}  // namespace lattice::reproduce
