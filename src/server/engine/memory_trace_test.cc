#include "server/engine/memory_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

#include "runtime/testing.h"

namespace lattice::server {
namespace {

// Compares with the states themselves, token by token.
TEST(MemoryTrace, IsHowMuchOfEachSlotATokenChanged) {
  const model::ModelConfig config = runtime::TinyConfig("lattice_dec");
  const auto model = runtime::Model::Untrained(config, 3, runtime::WeightFormat::kF32);
  const std::vector<int32_t> tokens = runtime::TestTokens(6);
  runtime::Engine engine(model, 1);
  runtime::Session watched(model), slow(model);
  MemoryTrace trace(config);
  runtime::Feed feed = {&watched, tokens, runtime::Want::kNone};
  trace.Watch(feed);
  engine.Run({&feed, 1});
  const auto memories = trace.Take();
  ASSERT_EQ(memories.size(), tokens.size());

  const auto slots = static_cast<size_t>(config.Slots()), width = static_cast<size_t>(config.HeadDim());
  for (size_t t = 0; t < tokens.size(); ++t) {
    const runtime::Session before = slow.Fork();
    engine.Append(slow, {&tokens[t], 1});
    ASSERT_EQ(memories[t]->write.size(), 4 * slots);
    ASSERT_EQ(memories[t]->novelty.size(), 4u);
    for (size_t cell = 0; cell < 4 * slots; ++cell) {
      const size_t head = cell / slots, first = cell % slots * width;
      const auto old = before.Memory(static_cast<int64_t>(head / 2), static_cast<int64_t>(head % 2));
      const auto now = slow.Memory(static_cast<int64_t>(head / 2), static_cast<int64_t>(head % 2));
      double change = 0, size = 0;
      for (size_t i = first; i < first + width; ++i) {
        change += std::pow(now[i] - old[i], 2);
        size += now[i] * now[i];
      }
      const double share = std::pow(10, 4 * memories[t]->write[cell] / 255.0 - 3);
      EXPECT_NEAR(share / std::sqrt(change / size), 1, 0.02) << t << " " << cell;
    }
  }
}

// The trace has the paper's novelty for Lattice and no substitute for other memories.
TEST(MemoryTrace, NoveltyIsTheMeasuredOneOrNone) {
  struct Noveltys : runtime::StepObserver {
    void Observe(const runtime::MemoryStep&, const runtime::StepFigures& figures) override {
      seen.push_back(figures.novelty);
    }
    std::vector<std::optional<double>> seen;
  };
  for (const char* mixer : {"lattice_sim", "deltanet"}) {
    const model::ModelConfig config = runtime::TinyConfig(mixer);
    const auto model = runtime::Model::Untrained(config, 3, runtime::WeightFormat::kF32);
    const std::vector<int32_t> tokens = runtime::TestTokens(1);
    runtime::Engine engine(model, 1);
    runtime::Session watched(model), measured(model);
    MemoryTrace trace(config);
    Noveltys noveltys;
    runtime::Feed feed = {&watched, tokens, runtime::Want::kNone};
    trace.Watch(feed);
    engine.Run({&feed, 1});
    feed = {&measured, tokens, runtime::Want::kNone, &noveltys};
    engine.Run({&feed, 1});
    const auto memories = trace.Take();
    ASSERT_EQ(memories[0]->novelty.size(), noveltys.seen.size());
    for (size_t i = 0; i < noveltys.seen.size(); ++i) {
      EXPECT_EQ(noveltys.seen[i].has_value(), std::string(mixer) == "lattice_sim");
      if (noveltys.seen[i]) {
        EXPECT_EQ(memories[0]->novelty[i], static_cast<float>(*noveltys.seen[i]));
      } else {
        EXPECT_TRUE(std::isnan(memories[0]->novelty[i]));
      }
    }
  }
}

TEST(MemoryTrace, TellsAWriteOfTheWholeSlotFromAStrongerOne) {
  for (const auto& [share, byte] : std::vector<std::pair<double, int>>{
           {0, 0}, {1e-9, 0}, {0.001, 0}, {0.01, 64}, {0.1, 128}, {1, 191}, {2, 210}, {10, 255}, {1e9, 255}})
    EXPECT_EQ(WriteByte(share), byte) << share;
  EXPECT_EQ(WriteByte(std::nan("")), 0);
}

}  // namespace
}  // namespace lattice::server
