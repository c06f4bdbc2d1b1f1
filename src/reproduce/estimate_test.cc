#include "reproduce/estimate.h"

#include <gtest/gtest.h>

#include "reproduce/plan.h"

namespace lattice::reproduce {
namespace {

Run Recall(const std::string& pairs) {
  Run run;
  run.tool = Tool::kMqar;
  run.settings = {{"mixers", "deltanet"}, {"d", "64"},           {"vocab", "8192"}, {"length", "64"},
                  {"pairs", pairs},       {"examples", "64000"}, {"epochs", "1"},   {"batch", "64"}};
  return run;
}

// A vocabulary of 8,192 costs more than two blocks of width 64, but only where a token is predicted.
TEST(RunFlops, CountLogitsOfQueriesOnly) {
  constexpr double kTokens = 64000.0 * 64, kHead = 3 * 2 * 8192.0 * 64;
  const double few = RunFlops(Recall("4")), many = RunFlops(Recall("16"));
  EXPECT_NEAR((many - few) / kTokens, kHead * 12 / 64, 4);
  EXPECT_GT(few / kTokens, kHead * 4 / 64);
  EXPECT_LT(few / kTokens, kHead);
}

}  // namespace
}  // namespace lattice::reproduce
