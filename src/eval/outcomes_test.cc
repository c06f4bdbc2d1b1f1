#include "eval/outcomes.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lattice::eval {
namespace {

Item WithChoices(const std::vector<std::string>& choices, int64_t gold) {
  Item item;
  for (const std::string& choice : choices) item.requests.push_back({"c", " " + choice, choice});
  item.gold = gold;
  return item;
}

TEST(Metrics, AccNormDividesByCodePoints) {
  // 4 code points in 8 bytes against 5 in 5.
  const Item item = WithChoices({"\u00e9\u00e9\u00e9\u00e9", "abcde"}, 1);
  const std::vector<Likelihood> scores = {{-4.4, false}, {-5.0, false}};
  const Outcome outcome = OutcomeOf(item, scores);
  EXPECT_FALSE(outcome.acc);        // -4.4 > -5
  EXPECT_TRUE(outcome.acc_norm);    // -1.1 < -1
  EXPECT_FALSE(outcome.acc_bytes);  // -0.55 > -1
}

// The harness computes numpy.argmax(log_likelihoods / lengths).
TEST(Metrics, AnEmptyChoiceIsDividedByItsLength) {
  const std::vector<Likelihood> scores = {{-9, false}, {-1, false}};
  EXPECT_TRUE(OutcomeOf(WithChoices({"abc", ""}, 1), scores).acc);
  EXPECT_TRUE(OutcomeOf(WithChoices({"abc", ""}, 0), scores).acc_norm);  // -3 > -1/0 = -inf
  EXPECT_TRUE(OutcomeOf(WithChoices({"abc", ""}, 0), scores).acc_bytes);
  EXPECT_TRUE(OutcomeOf(WithChoices({"", ""}, 0), scores).acc_norm);  // -inf twice: the first
  EXPECT_TRUE(
      OutcomeOf(WithChoices({"abc", ""}, 1), std::vector<Likelihood>{{-9, false}, {0, true}}).acc_norm);
}

TEST(Metrics, TheFirstWinsATie) {
  const std::vector<Likelihood> scores = {{-2, false}, {-1, false}, {-1, false}};
  EXPECT_TRUE(OutcomeOf(WithChoices({"a", "b", "c"}, 1), scores).acc);
  EXPECT_FALSE(OutcomeOf(WithChoices({"a", "b", "c"}, 2), scores).acc);
}

TEST(Metrics, StandardErrorOfTheMean) {
  const std::vector<double> values = {1, 0, 0, 1, 1};
  const Mean mean = MeanOf(values);
  EXPECT_DOUBLE_EQ(mean.value, 0.6);
  EXPECT_NEAR(mean.stderr_, std::sqrt((3 * 0.16 + 2 * 0.36) / 4 / 5), 1e-15);
  EXPECT_EQ(MeanOf(std::vector<double>{1.0}).stderr_, 0);
}

}  // namespace
}  // namespace lattice::eval
