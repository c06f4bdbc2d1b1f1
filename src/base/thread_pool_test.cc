#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "base/work_stealing_loop.h"

namespace lattice {
namespace {

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 7, 1000}) {
      for (const int64_t grain : {1, 3, 4096}) {
        std::vector<int> seen(static_cast<size_t>(count));
        pool.For(count, grain, [&](int64_t first, int64_t last) {
          EXPECT_LE(last - first, grain);
          for (int64_t i = first; i < last; ++i) ++seen[static_cast<size_t>(i)];
        });
        EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(count), 1));
      }
    }
  }
}

TEST(WorkStealingLoop, CoverEveryNumberOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    WorkStealingLoop work_loop(threads);
    for (const int64_t count : {0, 1, 4, 1000}) {
      std::vector<int> seen(static_cast<size_t>(count));
      work_loop.For(pool, count, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
      EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(count), 1)) << count << " by " << threads;
    }
  }
}

TEST(WorkStealingLoop, OwnFromTheFrontThenOthersFromTheBack) {
  WorkStealingLoop work_loop(2);
  work_loop.Reset(5);  // 0 1 and 2 3 4
  std::vector<int64_t> taken;
  for (const int64_t own : {0, 1, 0, 0, 1, 1, 0}) taken.push_back(work_loop.Take(own));
  EXPECT_EQ(taken, (std::vector<int64_t>{0, 2, 1, 4, 3, -1, -1}));
}

TEST(ThreadPool, ManyShortRoundsAndPausesBetweenThem) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 2000; ++round) {
    pool.For(6, 1, [&](int64_t first, int64_t) { sum += first; });
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(sum, 2000 * 15);
}

// More threads than cores: most join late or not at all.
TEST(ThreadPool, RoundsAreWholeWhoeverJoins) {
  ThreadPool pool(16);
  std::vector<int> seen(40);
  for (int round = 1; round <= 3000; ++round) {
    pool.For(40, 1, [&](int64_t first, int64_t) { ++seen[static_cast<size_t>(first)]; });
    ASSERT_EQ(seen, std::vector<int>(40, round));
  }
}

TEST(ThreadPool, CallersTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  const auto call = [&] {
    for (int i = 0; i < 200; ++i) pool.For(10, 1, [&](int64_t, int64_t) { ++sum; });
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(sum, 4000);
}

TEST(ThreadPool, RefusesAWrongNumber) {
  EXPECT_THROW(ThreadPool(-1), Error);
  EXPECT_THROW(ThreadPool(100000), Error);
}

}  // namespace
}  // namespace lattice
