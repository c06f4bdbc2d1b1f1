#include "dist/watch.h"

#include <csignal>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/format.h"

namespace lattice::dist {
namespace {

constexpr auto kBeat = std::chrono::milliseconds(500);
constexpr auto kLook = std::chrono::milliseconds(100);
// A pause of the looking thread that means that this process itself was stopped.
constexpr auto kOwnPause = std::chrono::milliseconds(2000);
constexpr auto kHearing = std::chrono::milliseconds(2500);

std::string BeatKey(int rank) { return StrCat("beat/", rank); }

void BlockSignals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

// "step host" of a sign "count step host".
std::pair<int64_t, std::string> StepAndHost(const std::string& sign) {
  std::istringstream in(sign);
  int64_t count = 0, step = 0;
  std::string host;
  in >> count >> step >> host;
  return {step, host};
}

double Seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Watch::Watch(Board board, WatchOptions options)
    : board_(std::move(board)), options_(std::move(options)), last_round_(Clock::now()) {
  signs_.resize(static_cast<size_t>(options_.size), {"", Clock::now()});
  beat_ = std::thread([this] { Beat(); });
  look_ = std::thread([this] { Look(); });
}

Watch::~Watch() { Stop(); }

bool Watch::Sleep(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stopping_; });
}

void Watch::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (beat_.joinable()) beat_.join();
  if (look_.joinable()) look_.join();
}

void Watch::Beat() {
  BlockSignals();
  try {
    int64_t count = 0;
    do {
      Round(++count);
      const std::lock_guard lock(mutex_);
      last_round_ = Clock::now();
    } while (Sleep(kBeat));
    board_.Post(BeatKey(options_.rank), "done");
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    // The looking thread finds the silence; a connection that broke needs no more patience.
    if (!stopping_) last_round_ -= std::chrono::hours(1);
  }
}

void Watch::Round(int64_t count) {
  board_.Post(BeatKey(options_.rank), StrCat(count, " ", step_.load(), " ", options_.host));
  if (board_.Has({kCulprit})) {
    const std::string message = board_.Read(std::string(kCulprit));
    board_.Add("heard", 1);
    return End(message);
  }
  std::vector<std::string> keys;
  std::vector<int> ranks;
  for (int rank = 0; rank < (options_.rank == 0 ? options_.size : 1); ++rank) {
    // A rank that has not begun to beat is still on its way: joining has a limit of its own.
    const bool begun = !signs_[static_cast<size_t>(rank)].text.empty();
    if (rank == options_.rank || (!begun && !board_.Has({BeatKey(rank)}))) continue;
    keys.push_back(BeatKey(rank));
    ranks.push_back(rank);
  }
  if (keys.empty()) return;
  const std::vector<std::string> values = board_.Read(keys);
  for (size_t i = 0; i < ranks.size(); ++i) Judge(ranks[i], values[i]);
}

void Watch::Judge(int rank, const std::string& text) {
  Sign& sign = signs_[static_cast<size_t>(rank)];
  const auto now = Clock::now();
  if (rank == 0) {
    const std::lock_guard lock(mutex_);
    root_sign_ = text;
  }
  if (text != sign.text || text == "done") {
    sign = {text, now};
    return;
  }
  const double silent = Seconds(now - sign.changed);
  if (silent < options_.patience) return;
  const auto [step, host] = StepAndHost(text);
  const std::string message =
      StrCat("[dist] rank ", rank, " on host ", host, " is lost: no sign of life for ", Fixed(silent, 1),
             " s; its last step was ", step, "; start all ranks again with --resume auto");
  Accuse(message);
  End(message);
}

void Watch::Look() {
  BlockSignals();
  auto before = Clock::now();
  while (Sleep(kLook)) {
    const auto now = Clock::now();
    const bool was_stopped = now - before > kOwnPause;
    before = now;
    double silent = 0;
    std::string sign;
    {
      const std::lock_guard lock(mutex_);
      if (was_stopped) last_round_ = now;
      silent = Seconds(now - last_round_);
      sign = root_sign_;
    }
    if (silent < options_.patience) continue;
    const int64_t step = StepAndHost(sign).first;
    return End(
        StrCat("[dist] rank 0 on host ", options_.root_host, " is lost, or the store at ", options_.store,
               ": no answer",
               silent < 60 ? StrCat(" for ", Fixed(silent, 1), " s") : std::string(", the connection broke"),
               "; its last step was ", step, "; start all ranks again with --resume auto"));
  }
}

void Watch::End(const std::string& message) {
  if (ended_.exchange(true)) return;
  if (options_.lost) options_.lost(message);
}

void Watch::Accuse(const std::string& message) {
  try {
    board_.PostFirst(kCulprit, message);
    WaitForOthers();
  } catch (const std::exception&) {
    // Without the store there is nobody to tell.
  }
}

void Watch::WaitForOthers() {
  // The lost rank does not hear it, and this one need not.
  const auto until = Clock::now() + kHearing;
  while (options_.holds_store && Clock::now() < until && board_.Add("heard", 0) < options_.size - 2)
    std::this_thread::sleep_for(kLook);
}

}  // namespace lattice::dist
