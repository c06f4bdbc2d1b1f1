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
                         [](const auto& name) { return model::TestName(name.param); });

TEST_P(EveryMemory, FiguresAreInRange) {
  const auto model = RandomModel(GetParam());
  const model::ModelConfig& config = model->config();
  if (!config.HasMemory()) {
    EXPECT_TRUE(io::Says(io::ErrorOf([&] { Examine(model, runtime::TestTokens(4), 2); }), {"transformer"}));
    return;
  }
  const MemoryRecord record = Examine(model, runtime::TestTokens(600), 7, 1);
  ASSERT_EQ(record.records.size(), 2u * record.numbers.size());
  const auto slots = static_cast<size_t>(config.Slots());
  const std::string memory = config.Layer(record.numbers[0]).mixer;
  for (const HeadRecord& head : record.records) {
    ASSERT_EQ(head.gamma.size(), 600u);
    ASSERT_EQ(head.snapshots.size(), 7u);
    EXPECT_EQ(head.snapshots.back().token, 599);
    const bool lattice = kernels::FindMemory(memory).objective.has_value();
    ASSERT_EQ(head.slot_write.size(), 600u * slots);
    for (const auto* figures : {&head.slot_novelty, &head.slot_beta})
      ASSERT_EQ(figures->size(), lattice ? head.slot_write.size() : 0);
    for (size_t i = 0; i < head.slot_write.size(); ++i) {
      EXPECT_TRUE(head.slot_write[i] >= 0 && std::isfinite(head.slot_write[i]));
      if (!lattice) continue;
      EXPECT_TRUE(head.slot_novelty[i] >= 0 && head.slot_novelty[i] <= 1 + 1e-6f);
      EXPECT_TRUE(head.slot_beta[i] > 0 && std::isfinite(head.slot_beta[i]));
    }
    for (int64_t t = 0; t < 600; ++t) {
      double sum = 0;
      for (size_t i = 0; i < slots; ++i) sum += head.read[static_cast<size_t>(t) * slots + i];
      // Nothing is read before a token has left the window, from a memory that starts with nothing.
      if (sum > 0 || t >= config.window + config.sinks) {
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
    for (const MemorySnapshot& snapshot : head.snapshots) {
      EXPECT_TRUE(snapshot.memory.effective_rank >= 1 &&
                  snapshot.memory.effective_rank <= static_cast<double>(slots) + 1e-9);
      EXPECT_TRUE(snapshot.memory.similarity >= 0 && snapshot.memory.similarity <= 1 + 1e-6);
    }
  }
}

// Checks the observed states of one head against the update that they must result from.
struct Rebuilt : runtime::StepObserver {
  void Observe(const runtime::MemoryStep& step, const runtime::StepFigures&) override {
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
  const runtime::Feed feed = {&watched, tokens, runtime::Want::kLast, &observer};
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
  EXPECT_EQ(json["layers"][1]["heads"][1]["novelty"][4].size(), 12u);
  EXPECT_EQ(json["layers"][1]["heads"][1]["token_answer"].size(), 5u);
  EXPECT_EQ(json["layers"][0]["heads"][0]["snapshots"].size(), 2u);
}

TEST(Microscope, LayersOfAttentionAreLeftOut) {
  const MemoryRecord record =
      Examine(RandomModel("transformer,gated_deltanet+window"), runtime::TestTokens(9), 2, 1);
  EXPECT_EQ(record.layers, 1);
  EXPECT_EQ(record.numbers, std::vector<int64_t>{1});
  EXPECT_EQ(record.At(0, 1).write.size(), 9u);
}

TEST(Microscope, FiguresOfLatticeAreNullForOtherMemories) {
  const MemoryRecord record = Examine(RandomModel("deltanet"), runtime::TestTokens(3), 1, 1);
  EXPECT_FALSE(record.HasNovelty());
  const std::vector<std::string> pieces = {"a", "b", "c"};
  const nlohmann::ordered_json json = RecordJson(record, {"m", "deltanet", pieces});
  const nlohmann::ordered_json& head = json["layers"][0]["heads"][0];
  for (const char* figure : {"novelty", "beta", "token_novelty"})
    EXPECT_TRUE(head[figure].is_null()) << figure;
  for (const char* figure : {"novelty", "beta"}) EXPECT_TRUE(head["summary"][figure].is_null()) << figure;
  EXPECT_TRUE(head["summary"]["answer"].is_number());
  EXPECT_NE(RecordPage(record, {"m", "deltanet", pieces}).find("\"novelty\":null"), std::string::npos);
}

}  // namespace
}  // namespace lattice::eval
