#include "eval/microscope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "eval/microscope_page.h"
#include "eval/testing.h"
#include "io/testing.h"

namespace lattice::eval {
namespace {

class EveryMemory : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registry, EveryMemory, ::testing::ValuesIn(runtime::AllMixers()),
                         [](const auto& name) { return name.param; });

TEST_P(EveryMemory, FiguresAreInRange) {
  const auto model = RandomModel(GetParam());
  if (model::FindMixer(GetParam()).attention) {
    EXPECT_TRUE(io::Says(io::ErrorOf([&] { Examine(model, runtime::TestTokens(4), 2); }), {"transformer"}));
    return;
  }
  const MemoryRecord record = Examine(model, runtime::TestTokens(600), 7, 1);
  ASSERT_EQ(record.records.size(), 4u);
  for (const HeadRecord& head : record.records) {
    ASSERT_EQ(head.gamma.size(), 600u);
    ASSERT_EQ(head.snapshots.size(), 7u);
    EXPECT_EQ(head.snapshots.back().token, 599);
    for (size_t i = 0; i < head.write.size(); ++i) {
      EXPECT_TRUE(head.write[i] >= 0 && std::isfinite(head.write[i]));
      EXPECT_TRUE(head.novelty[i] >= 0 && head.novelty[i] <= 1);
      EXPECT_TRUE(head.beta[i] > 0 && std::isfinite(head.beta[i]));
    }
    for (int64_t t = 0; t < 600; ++t) {
      double sum = 0;
      for (size_t i = 0; i < 12; ++i) sum += head.read[static_cast<size_t>(t) * 12 + i];
      EXPECT_NEAR(sum, 1, 1e-5);
    }
    for (const MemorySnapshot& snapshot : head.snapshots) {
      EXPECT_TRUE(snapshot.memory.effective_rank >= 1 && snapshot.memory.effective_rank <= 12 + 1e-9);
      EXPECT_TRUE(snapshot.memory.similarity >= 0 && snapshot.memory.similarity <= 1 + 1e-6);
    }
  }
}

// The step itself, from the figures: a slot keeps its length, so beta^2 (mu^2 + write^2) = 1.
TEST(Microscope, BetaAndWriteGiveALatticeSlotItsLengthBack) {
  for (const char* mixer : {"lattice_dec", "lattice_sim", "lattice_enc"}) {
    const MemoryRecord record = Examine(RandomModel(mixer), runtime::TestTokens(50), 1, 1);
    for (const HeadRecord& head : record.records) {
      for (size_t i = 0; i < head.write.size(); ++i) {
        const double mu = head.mu[i / 12], write = head.write[i], beta = head.beta[i];
        EXPECT_NEAR(beta * beta * (mu * mu + write * write), 1, 1e-4);
      }
    }
  }
}

// What the observer sees of one head, checked against the update it came from.
struct Rebuilt : runtime::StepObserver {
  void Observe(const runtime::MemoryStep& step) override {
    const size_t m = step.k.size(), d = step.v.size();
    for (size_t i = 0; i < m; ++i) {
      double length = 0, length_after = 0;
      for (size_t c = 0; c < d; ++c) {
        length += double{step.before[i * d + c]} * step.before[i * d + c];
        length_after += double{step.after[i * d + c]} * step.after[i * d + c];
      }
      worst = std::max(worst, std::abs(std::sqrt(length_after / length) - 1));
    }
    if (step.token == 0) first = step.token;
    last = step.token;
  }
  double worst = 0;
  int64_t first = -1, last = -1;
};

TEST(Microscope, TheObserverSeesEveryStateAndChangesNothing) {
  const auto model = RandomModel("lattice_dec");
  const std::vector<int32_t> tokens = runtime::TestTokens(700);  // more than one pass
  runtime::Engine engine(model, 2);
  runtime::Session watched(model), alone(model);
  Rebuilt observer;
  const runtime::Feed feed = {&watched, tokens, runtime::Want::kLast, nullptr, &observer};
  engine.Run({&feed, 1});
  const std::vector<float> logits(engine.Logits(0).begin(), engine.Logits(0).end());
  const std::span<const float> expected = engine.Append(alone, tokens);
  EXPECT_TRUE(std::equal(logits.begin(), logits.end(), expected.begin(), expected.end()));
  EXPECT_EQ(observer.first, 0);
  EXPECT_EQ(observer.last, 699);
  EXPECT_LT(observer.worst, 1e-4);
}

TEST(Microscope, WritesJsonAndAPageThatNoTextBreaks) {
  const MemoryRecord record = Examine(RandomModel("lattice_dec"), runtime::TestTokens(5), 2, 1);
  const std::vector<std::string> pieces = {"a", "</script>", "\n", "\"", "\xff"};
  const RecordLabels labels = {"runs/<x>", "lattice_dec", pieces};
  const std::string page = RecordPage(record, labels);
  EXPECT_EQ(page.find("@DATA@"), std::string::npos);
  EXPECT_EQ(page.find("</script>"), page.rfind("</script>"));
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_TRUE(io::Says(page, {"runs/&lt;x&gt;", "\\u003c/script>"}));
  const nlohmann::ordered_json json = RecordJson(record, {"m", "lattice_dec", std::span(pieces).first(4)});
  EXPECT_EQ(json["layers"].size(), 2u);
  EXPECT_EQ(json["layers"][1]["heads"][1]["write"].size(), 5u);
  EXPECT_EQ(json["layers"][1]["heads"][1]["write"][4].size(), 12u);
  EXPECT_EQ(json["layers"][0]["heads"][0]["snapshots"].size(), 2u);
}

}  // namespace
}  // namespace lattice::eval
