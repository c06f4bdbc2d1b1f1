#include "data/prefetch.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "io/testing.h"

namespace lattice::data {
namespace {

class PrefetchTest : public ::testing::Test {
 protected:
  PrefetchTest() {
    const std::string hash(64, 'a');
    std::vector<int32_t> tokens(5000);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7919 % 60000);
    TokenStoreWriter writer(dir_ / "store", hash, 512);
    writer.Append(tokens, 5000);
    writer.Finish();
    store_.emplace(dir_ / "store", hash);
    batches_.emplace(*store_, BatchOptions{.rows = 3, .seq_len = 40, .seed = 5});
  }

  std::vector<int64_t> Direct(int64_t step) const {
    std::vector<int64_t> tokens(3 * 41);
    batches_->Read(step, 0, 3, tokens);
    return tokens;
  }

  io::TestDir dir_;
  std::optional<TokenStore> store_;
  std::optional<Batches> batches_;
};

TEST_F(PrefetchTest, ReadsOnAndOn) {
  Prefetch prefetch(*batches_);
  for (int64_t step = 0; step < 300; ++step) EXPECT_EQ(prefetch.Take(step), Direct(step)) << step;
}

TEST_F(PrefetchTest, TwoHundredRandomSeeksGiveWhatSequentialReadingGives) {
  std::vector<std::vector<int64_t>> sequential;
  for (int64_t step = 0; step < 400; ++step) sequential.push_back(Direct(step));
  Prefetch prefetch(*batches_);
  const Random random(9);
  for (uint64_t i = 0; i < 200; ++i) {
    const auto step = static_cast<int64_t>(random.Below(398, i));
    EXPECT_EQ(prefetch.Take(step), sequential[static_cast<size_t>(step)]) << step;
    if (i % 3 != 0) continue;
    EXPECT_EQ(prefetch.Take(step + 1), sequential[static_cast<size_t>(step) + 1]) << step;
  }
}

TEST_F(PrefetchTest, MayEndWithoutBeingUsed) { Prefetch prefetch(*batches_); }

}  // namespace
}  // namespace lattice::data
