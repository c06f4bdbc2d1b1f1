// Claims of runs in a shared directory: one holder at a time, a dead one's claims expire.
#include "reproduce/claims.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "io/file.h"
#include "io/testing.h"

namespace lattice::reproduce {
namespace {

constexpr double kLong = 3600, kShort = 0.2;

void Pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(Claims, OnlyOneTakesARun) {
  const io::TestDir dir;
  Claims one(dir / "claims", kLong), other(dir / "claims", kLong);
  EXPECT_TRUE(one.Take("a"));
  EXPECT_TRUE(one.Take("a")) << "it is held";
  EXPECT_FALSE(other.Take("a"));
  EXPECT_TRUE(other.Take("ab")) << "another run, whose name begins alike";
  one.Release("a");
  EXPECT_TRUE(other.Take("a"));
}

TEST(Claims, OfManyThreadsOneWins) {
  const io::TestDir dir;
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> winners = 0;
    std::vector<std::unique_ptr<Claims>> all;
    for (int i = 0; i < 8; ++i) all.push_back(std::make_unique<Claims>(dir / "claims", kLong));
    std::vector<std::thread> threads;
    for (const auto& claims : all)
      threads.emplace_back([&] { winners += claims->Take(StrCat("run-", round)) ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners, 1);
  }
}

TEST(Claims, OneThatIsRenewedDoesNotExpire) {
  const io::TestDir dir;
  Claims holder(dir / "claims", kShort), other(dir / "claims", 3 * kShort);
  ASSERT_TRUE(holder.Take("a"));
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(holder.Renew().empty());
    EXPECT_FALSE(other.Take("a"));
    Pause(kShort / 8);
  }
}

TEST(Claims, OneThatIsNotRenewedIsTakenOverOnceAndItsHolderLearnsIt) {
  const io::TestDir dir;
  Claims dead(dir / "claims", kShort), one(dir / "claims", kShort), other(dir / "claims", kShort);
  ASSERT_TRUE(dead.Take("a"));
  EXPECT_FALSE(one.Take("a"));
  EXPECT_FALSE(other.Take("a"));
  Pause(2 * kShort);
  EXPECT_TRUE(one.Take("a"));
  EXPECT_FALSE(other.Take("a")) << "it has seen the old claim expire, but not this one";
  EXPECT_EQ(dead.Renew(), std::vector<std::string>{"a"});
  dead.Release("a");
  EXPECT_TRUE(one.Renew().empty()) << "giving up what is lost changes nothing";
  one.Release("a");
  EXPECT_TRUE(std::filesystem::is_empty(dir / "claims"));
}

TEST(Claims, FilesOfOthersAreLeftAlone) {
  const io::TestDir dir;
  dir.Put("a.1x", "");
  dir.Put("a.", "");
  dir.Put("b", "");
  Claims claims(dir / ".", kLong);
  EXPECT_TRUE(claims.Take("a"));
  claims.Release("a");
  EXPECT_TRUE(std::filesystem::exists(dir / "a.1x"));
}

}  // namespace
}  // namespace lattice::reproduce
