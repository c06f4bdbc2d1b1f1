// Carried states that were saved by some ranks are divided anew among others.
#include "train/saved_states.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "io/testing.h"

namespace lattice::train {
namespace {

// States of `micro` micro-batches of two rows each; row r of the memory is filled with r.
std::vector<nn::States> Numbered(int64_t micro) {
  std::vector<nn::States> states(static_cast<size_t>(micro));
  for (int64_t i = 0; i < micro; ++i) {
    nn::BlockState block;
    block.memory = at::arange(2 * i, 2 * i + 2, at::kFloat).view({2, 1}).expand({2, 3}).contiguous();
    states[static_cast<size_t>(i)] = {block, block};
  }
  return states;
}

TEST(SavedStates, RowsAreDividedAnew) {
  const std::vector<nn::States> states = Numbered(4);
  const std::vector<nn::States> parts = SplitStates(states, 8, 3, 5, 3);
  ASSERT_EQ(parts.size(), 2);
  EXPECT_TRUE(at::equal(parts[0][1].memory.select(1, 0), at::arange(3, 6, at::kFloat)));
  EXPECT_TRUE(at::equal(parts[1][0].memory.select(1, 0), at::arange(6, 8, at::kFloat)));
  EXPECT_FALSE(parts[0][0].conv_v.defined());
  EXPECT_TRUE(SplitStates({}, 8, 0, 8, 2).empty());
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { SplitStates(states, 6, 0, 6, 2); }), {"of 8 sequences", "has 6"}));
}

TEST(SavedStates, FilesOfSeveralRanksMakeOneList) {
  const io::TestDir dir;
  const std::vector<nn::States> all = Numbered(4);
  const std::vector<nn::States> front(all.begin(), all.begin() + 2), back(all.begin() + 2, all.end());
  WriteTensors(dir / "a.safetensors", StateTensors(front));
  WriteTensors(dir / "b.safetensors", StateTensors(back, 2));
  const std::vector<nn::States> loaded = LoadStates({dir / "b.safetensors", dir / "a.safetensors"});
  ASSERT_EQ(loaded.size(), 4);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(at::equal(loaded[i][1].memory, all[i][1].memory));
}

}  // namespace
}  // namespace lattice::train
