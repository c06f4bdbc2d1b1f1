#include "cli/demo_recall.h"

#include <gtest/gtest.h>

namespace lattice::cli {
namespace {

TEST(DemoRecall, ShowsWhatItClaims) {
  for (const char* rule : {"lattice_dec", "deltanet", "linear_attention"}) {
    EXPECT_EQ(Recall(rule, {.pairs = 8}), 1) << rule;
  }
  EXPECT_GT(Recall("lattice_dec", {.pairs = 32, .writes = 4}), 0.95);
  EXPECT_GT(Recall("deltanet", {.pairs = 32, .writes = 4}), 0.95);
  EXPECT_LT(Recall("linear_attention", {.pairs = 32, .writes = 4}), 0.5);
}

}  // namespace
}  // namespace lattice::cli
