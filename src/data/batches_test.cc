#include "data/batches.h"

#include <gtest/gtest.h>

#include <set>

#include "io/testing.h"

namespace lattice::data {
namespace {

// A store in which the token at position i is i.
class BatchesTest : public ::testing::Test {
 protected:
  TokenStore Store(int count) {
    const std::string hash(64, 'a');
    const std::filesystem::path path = dir_ / StrCat("store", count);
    if (!IsTokenStore(path)) {
      std::vector<int32_t> tokens;
      for (int i = 0; i < count; ++i) tokens.push_back(i);
      TokenStoreWriter writer(path, hash);
      writer.Append(tokens, count);
      writer.Finish();
    }
    return TokenStore(path, hash);
  }

  io::TestDir dir_;
};

TEST_F(BatchesTest, AnEpochVisitsEveryWindowOnce) {
  const TokenStore store = Store(1000);
  const Batches batches(store, {.rows = 3, .seq_len = 10, .seed = 5});
  const int64_t windows = batches.epoch_windows();
  EXPECT_EQ(windows, 98);
  std::set<int64_t> first_epoch, second_epoch;
  for (int64_t i = 0; i < windows; ++i) first_epoch.insert(batches.Position(i / 3, i % 3));
  for (int64_t i = windows; i < 2 * windows; ++i) second_epoch.insert(batches.Position(i / 3, i % 3));
  EXPECT_EQ(std::ssize(first_epoch), windows);
  EXPECT_EQ(*first_epoch.rbegin() - *first_epoch.begin(), (windows - 1) * 10);
  EXPECT_LE(*first_epoch.rbegin() + 11, 1000);
  EXPECT_EQ(std::ssize(second_epoch), windows);
  EXPECT_NE(first_epoch, second_epoch) << "the cuts should differ between epochs";
}

TEST_F(BatchesTest, RowsAreTheTokensAtTheirPositions) {
  const TokenStore store = Store(1000);
  const Batches batches(store, {.rows = 4, .seq_len = 10, .seed = 5});
  std::vector<int64_t> whole(4 * 11), part(2 * 11);
  batches.Read(17, 0, 4, whole);
  batches.Read(17, 2, 2, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 22));
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t t = 0; t <= 10; ++t) {
      EXPECT_EQ(whole[static_cast<size_t>(row * 11 + t)], batches.Position(17, row) + t);
    }
  }
}

TEST_F(BatchesTest, AnotherSeedIsAnotherOrder) {
  const TokenStore store = Store(1000);
  const Batches one(store, {.rows = 4, .seq_len = 10, .seed = 1}),
      two(store, {.rows = 4, .seq_len = 10, .seed = 2});
  int equal = 0;
  for (int64_t step = 0; step < 20; ++step) equal += one.Position(step, 0) == two.Position(step, 0);
  EXPECT_LT(equal, 3);
}

TEST_F(BatchesTest, WithoutShufflingWindowsFollowEachOther) {
  const TokenStore store = Store(1000);
  const Batches batches(store, {.rows = 2, .seq_len = 10, .shuffle = false});
  EXPECT_EQ(batches.Position(0, 0), 0);
  EXPECT_EQ(batches.Position(0, 1), 10);
  EXPECT_EQ(batches.Position(3, 1), 70);
}

TEST_F(BatchesTest, StreamsGoOnFromStepToStep) {
  const TokenStore store = Store(1000);
  const Batches batches(store, {.rows = 2, .seq_len = 10, .streams = true});
  EXPECT_TRUE(batches.StartsAnew(0));
  for (int64_t step = 1; step < 49; ++step) {
    EXPECT_FALSE(batches.StartsAnew(step));
    for (int64_t row = 0; row < 2; ++row)
      EXPECT_EQ(batches.Position(step, row), batches.Position(step - 1, row) + 10);
  }
  EXPECT_TRUE(batches.StartsAnew(49));
  EXPECT_EQ(batches.Position(49, 1), batches.Position(0, 1));
  EXPECT_EQ(batches.Position(0, 1), 499);
}

TEST_F(BatchesTest, OneWindowIsEnoughAndLessIsAnError) {
  const TokenStore store = Store(11);
  EXPECT_EQ(Batches(store, {.rows = 5, .seq_len = 10}).Position(3, 4), 0);
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Batches(store, {.rows = 1, .seq_len = 11}); }),
                       {"11 tokens", "train.seq_len = 11", "longer text"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Batches(store, {.rows = 2, .seq_len = 10, .streams = true}); }),
                       {"2 sequence(s)"}));
}

}  // namespace
}  // namespace lattice::data
