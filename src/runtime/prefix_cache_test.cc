#include "runtime/prefix_cache.h"

#include <gtest/gtest.h>

#include "io/testing.h"
#include "runtime/engine.h"
#include "runtime/testing.h"

namespace lattice::runtime {
namespace {

class PrefixCacheTest : public testing::Test {
 protected:
  Snapshot Read(std::span<const int32_t> tokens) {
    Session session(model_);
    engine_.Append(session, tokens);
    return session.Checkpoint();
  }
  std::shared_ptr<const Model> model_ = Model::Untrained(TinyConfig("lattice_dec"), 1, WeightFormat::kF32);
  Engine engine_{model_, 1};
};

TEST_F(PrefixCacheTest, FindsTheLongestPrefixAndItsState) {
  PrefixCache cache(int64_t{1} << 30);
  const std::vector<int32_t> tokens = TestTokens(50);
  const std::span<const int32_t> all = tokens;
  EXPECT_TRUE(cache.Find(all).state.empty());
  cache.Put(all.first(10), Read(all.first(10)));
  cache.Put(all.first(30), Read(all.first(30)));
  EXPECT_EQ(cache.Find(all.first(29)).tokens, 10);
  const PrefixCache::Hit hit = cache.Find(all);
  ASSERT_EQ(hit.tokens, 30);
  Session from_cache(model_, hit.state), fresh(model_);
  const auto a = engine_.Append(from_cache, all.subspan(30));
  const std::vector<float> logits(a.begin(), a.end());
  const auto b = engine_.Append(fresh, all);
  EXPECT_EQ(logits, std::vector<float>(b.begin(), b.end()));
  const std::vector<int32_t> other = {66, 1, 2};
  EXPECT_EQ(cache.Find(other).tokens, 0);
  EXPECT_EQ(cache.Lookups(), 4);
  EXPECT_EQ(cache.Hits(), 2);
}

TEST_F(PrefixCacheTest, KeepsToItsBudgetAndForgetsTheOldest) {
  const std::vector<int32_t> tokens = TestTokens(40);
  const std::span<const int32_t> all = tokens;
  const Snapshot one = Read(all.first(1));
  PrefixCache cache(3 * (one.Bytes() + 400));
  for (size_t n = 1; n <= 3; ++n) cache.Put(all.first(n), Read(all.first(n)));
  EXPECT_EQ(cache.Entries(), 3);
  cache.Find(all.first(1));
  cache.Put(all.first(4), Read(all.first(4)));
  EXPECT_EQ(cache.Entries(), 3);
  EXPECT_EQ(cache.Find(all.first(1)).tokens, 1) << "used a moment ago";
  EXPECT_EQ(cache.Find(all.first(2)).tokens, 1) << "2 was the oldest";
  cache.Put(all.first(4), Read(all.first(4)));
  EXPECT_EQ(cache.Entries(), 3) << "the same prompt again takes no room";
  EXPECT_LE(cache.Bytes(), 3 * (one.Bytes() + 400));
  PrefixCache none(0);
  none.Put(all.first(1), one);
  EXPECT_EQ(none.Entries(), 0);
}

TEST_F(PrefixCacheTest, WhatIsKnownIsNotReplaced) {
  PrefixCache cache(1 << 20);
  const std::vector<int32_t> tokens = TestTokens(5);
  cache.Put(tokens, Read(tokens));
  Session other(model_, Read(tokens));
  for (float& value : other.state().fixed) value = 1;
  cache.Put(tokens, other.Checkpoint());
  Session found(model_, cache.Find(tokens).state), right(model_, Read(tokens));
  EXPECT_EQ(found.Serialize(), right.Serialize());
}

TEST_F(PrefixCacheTest, RefusesAStateOfOtherTokens) {
  PrefixCache cache(1 << 20);
  const std::vector<int32_t> tokens = TestTokens(5);
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { cache.Put(tokens, Read(std::span(tokens).first(2))); }), {"5 tokens"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { cache.Put(tokens, Snapshot()); }), {"does not belong"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { PrefixCache negative(-1); }), {"budget of -1"}));
}

}  // namespace
}  // namespace lattice::runtime
