#include "train/layout.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "train/trainer.h"

namespace lattice::train {
namespace {

model::Config Small() {
  model::Config config;
  config.model.vocab_size = 257;
  config.train.seq_len = 64;
  config.train.batch_tokens = 8 * 64;
  return config;
}

TEST(Layout, OfOneProcessIsTheWholeStep) {
  const Layout layout(Small(), nullptr);
  EXPECT_EQ(layout.rows, 8);
  EXPECT_EQ(layout.own_rows, 8);
  EXPECT_EQ(layout.piece, 64);
  EXPECT_EQ(layout.Text(), "8 sequences");
}

TEST(Layout, OfOneProcessRefusesToShareSequences) {
  model::Config config = Small();
  config.train.sequence_ranks = 2;
  EXPECT_THROW(Layout(config, nullptr), Error);
}

// Ranks that share sequences want a micro-batch each, and room for as many pieces.
TEST(ChooseMicroBatch, LeavesNoRankIdle) {
  model::Config config = Small();
  EXPECT_EQ(ChooseMicroBatch(config), 8);
  EXPECT_EQ(ChooseMicroBatch(config, 2), 4);
  config.train.sequence_ranks = 4;
  EXPECT_EQ(ChooseMicroBatch(config), 2);
  EXPECT_EQ(ChooseMicroBatch(config, 2), 1);
  EXPECT_EQ(ChooseMicroBatch(config, 8), 1);
}

}  // namespace
}  // namespace lattice::train
