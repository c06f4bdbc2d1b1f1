#include "server/http/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>

namespace lattice::server::http {
namespace {

class Does : public Work {
 public:
  explicit Does(std::function<void()> what) : what_(std::move(what)) {}
  void Run() noexcept override { what_(); }

 private:
  const std::function<void()> what_;
};

TEST(WorkerPool, RunsAWorkOnOneThreadAtATimeAndAgainWhenPosted) {
  std::atomic<int> inside = 0, most = 0, runs = 0;
  WorkerPool pool(4);
  const auto work = std::make_shared<Does>([&] {
    most = std::max<int>(most, ++inside);
    ++runs;
    --inside;
  });
  for (int i = 0; i < 1000; ++i) pool.Deliver(work);
  pool.Stop();
  EXPECT_EQ(most, 1);
  EXPECT_GE(runs, 1);
}

TEST(WorkerPool, LongRequestsLeaveAThreadToDeliveries) {
  WorkerPool pool(3);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  int accepted = 0;
  for (int i = 0; i < 5; ++i)
    accepted += pool.Request(std::make_shared<Does>([&] { released.wait(); }), 8) ? 1 : 0;
  EXPECT_EQ(accepted, 5);
  std::promise<void> delivered;
  pool.Deliver(std::make_shared<Does>([&] { delivered.set_value(); }));
  EXPECT_EQ(delivered.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  release.set_value();
  pool.Stop();  // what it still runs waits for what this function owns
}

TEST(WorkerPool, IsIdleWhenWhatHasRunIsDestroyed) {
  std::promise<void> release, destroying;
  const std::shared_future<void> released = release.get_future().share();
  WorkerPool pool(2);
  EXPECT_TRUE(pool.Idle());
  const auto wait = [&](const int* value) {
    destroying.set_value();
    released.wait();
    delete value;
  };
  // The last owner of what the work holds is the thread that has run it.
  EXPECT_TRUE(pool.Request(std::make_shared<Does>([held = std::shared_ptr<int>(new int(0), wait)] {}), 8));
  destroying.get_future().wait();
  EXPECT_FALSE(pool.Idle());
  release.set_value();
  while (!pool.Idle()) std::this_thread::yield();
  pool.Stop();
}

TEST(WorkerPool, RefusesRequestsBeyondItsQueue) {
  WorkerPool pool(2);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> done = 0;
  int accepted = 0;
  for (int i = 0; i < 10; ++i) {
    const auto work = std::make_shared<Does>([&] {
      released.wait();
      ++done;
    });
    accepted += pool.Request(work, 3) ? 1 : 0;
  }
  EXPECT_GE(accepted, 3);
  EXPECT_LE(accepted, 4) << "three that wait, and one that runs";
  release.set_value();
  pool.Stop();
  EXPECT_EQ(done, accepted);
}

}  // namespace
}  // namespace lattice::server::http
