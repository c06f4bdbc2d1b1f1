// Heartbeats through the store: every rank shows that it is alive, and learns when another is not.
#ifndef LATTICE_DIST_WATCH_H_
#define LATTICE_DIST_WATCH_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dist/board.h"

namespace lattice::dist {

struct WatchOptions {
  int rank = 0;
  int size = 1;
  std::string host;          // of this rank
  std::string root_host;     // of rank 0
  std::string store;         // HOST:PORT, for messages
  bool holds_store = false;  // the store is in this process, so it ends last
  double patience = 7;       // seconds without a sign of life that a rank is given
  // Called once, from a thread of the watch, with what happened to whom. Should end the process, because the
  // other threads may wait for the lost rank without end.
  std::function<void(const std::string&)> lost;
};

// Rank 0 looks at all, the others at rank 0 and at the store, so that the traffic grows with the number of
// ranks and not with its square. What one finds, it posts, and all end with the same words.
class Watch {
 public:
  // `board` must have a connection of its own: a call that waits for a dead store must not block others.
  Watch(Board board, WatchOptions options);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // The step that this rank has reached, for the words of the others.
  void SetStep(int64_t step) { step_ = step; }

  // From here on the callback is not called: this process ends by itself.
  void Retire() { ended_ = true; }

  // Tells all ranks to end because of what `message` says, and waits until they have heard it, for some
  // seconds. The callback is not called here.
  void Accuse(const std::string& message);

  // This rank is about to end as it should: its silence is no fault any more.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Sign {
    std::string text;
    Clock::time_point changed;
  };

  void Beat();
  void Round(int64_t count);
  void Judge(int rank, const std::string& text);
  void Look();
  // Calls the callback, at the first call.
  void End(const std::string& message);
  void WaitForOthers();
  bool Sleep(std::chrono::milliseconds time);

  Board board_;
  const WatchOptions options_;
  std::atomic<int64_t> step_ = 0;
  std::atomic<bool> ended_ = false;
  std::vector<Sign> signs_;  // used by the beating thread only
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  Clock::time_point last_round_;
  std::string root_sign_;
  std::thread beat_, look_;
};

}  // namespace lattice::dist

#endif  // LATTICE_DIST_WATCH_H_
