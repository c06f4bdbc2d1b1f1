#include "train/schedule.h"

#include <gtest/gtest.h>

namespace lattice::train {
namespace {

TEST(LearningRate, WarmsUpThenFallsToTheMinimum) {
  model::TrainConfig config;
  config.steps = 1000;
  config.warmup = 100;
  config.lr = 1e-2;
  config.min_lr = 1e-4;
  EXPECT_DOUBLE_EQ(LearningRate(config, 0), 1e-4);
  EXPECT_DOUBLE_EQ(LearningRate(config, 49), 5e-3);
  EXPECT_DOUBLE_EQ(LearningRate(config, 99), 1e-2);
  EXPECT_DOUBLE_EQ(LearningRate(config, 100), 1e-2);
  EXPECT_DOUBLE_EQ(LearningRate(config, 999), 1e-4);
  EXPECT_NEAR(LearningRate(config, 549), (1e-2 + 1e-4) / 2, 1e-5);
  for (int64_t step = 101; step < 1000; ++step)
    EXPECT_LT(LearningRate(config, step), LearningRate(config, step - 1));
}

TEST(LearningRate, StaysInRangeAtTheEdges) {
  model::TrainConfig config;
  config.lr = 1e-5;
  config.min_lr = 3e-5;
  for (const int64_t steps : {1, 2, 50, 51}) {
    for (const int64_t warmup : {0, 1, 50, 100}) {
      config.steps = steps;
      config.warmup = warmup;
      for (int64_t step = 0; step < steps; ++step) {
        EXPECT_GT(LearningRate(config, step), 0);
        EXPECT_LE(LearningRate(config, step), config.lr);
      }
    }
  }
}

}  // namespace
}  // namespace lattice::train
