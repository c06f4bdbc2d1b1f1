// The same tokens give the same bits however they are fed: in blocks or steps, alone or in a batch, after a
// fork, a rewind or a load.
#include "runtime/session.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "io/file.h"
#include "io/testing.h"
#include "model/cost.h"
#include "runtime/engine.h"
#include "runtime/testing.h"

namespace lattice::runtime {
namespace {

using Logits = std::vector<float>;

Logits Append(Engine& engine, Session& session, std::span<const int32_t> tokens) {
  const auto logits = engine.Append(session, tokens);
  return {logits.begin(), logits.end()};
}

class EveryMixer : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registry, EveryMixer, testing::ValuesIn(AllMixers()),
                         [](const auto& mixer) { return model::TestName(mixer.param); });

TEST_P(EveryMixer, BlocksAndStepsGiveTheSameBits) {
  for (const WeightFormat format :
       {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kInt8, WeightFormat::kInt4}) {
    model::ModelConfig config = TinyConfig(GetParam());
    config.hidden = 109;  // no multiple of a vector
    const auto model = Model::Untrained(config, 1, format);
    Engine engine(model, 2);
    const std::vector<int32_t> tokens = TestTokens(90);
    Session whole(model), steps(model), parts(model);
    const Logits expected = Append(engine, whole, tokens);
    Logits last;
    for (const int32_t& token : tokens) last = Append(engine, steps, {&token, 1});
    EXPECT_EQ(last, expected);
    Append(engine, parts, std::span(tokens).first(33));
    EXPECT_EQ(Append(engine, parts, std::span(tokens).subspan(33)), expected);
    EXPECT_EQ(steps.state().fixed, whole.state().fixed);
    EXPECT_EQ(steps.state().keys, whole.state().keys);
    EXPECT_EQ(whole.position(), 90);
  }
}

TEST_P(EveryMixer, CutsAreInvisible) {
  const auto model = Model::Untrained(TinyConfig(GetParam()), 1, WeightFormat::kF32);
  Engine engine(model, 1);
  const std::vector<int32_t> tokens = TestTokens(60);
  Session whole(model);
  const Logits expected = Append(engine, whole, tokens);
  const io::TestDir dir;
  const Random random(4);
  for (uint64_t i = 0; i < 100; ++i) {
    const size_t cut = 1 + random.Below(58, i);
    Session session(model);
    Append(engine, session, std::span(tokens).first(cut));
    const auto rest = std::span(tokens).subspan(cut);
    const Snapshot here = session.Checkpoint();
    Session fork = session.Fork();
    session.Save(dir / "session.safetensors");
    EXPECT_EQ(session.Serialize(), io::ReadFile(dir / "session.safetensors"));
    const Session sent = Session::Deserialize(model, session.Serialize(), "the bytes");
    EXPECT_EQ(sent.Serialize(), session.Serialize());
    // The original continues with other tokens; its copies must not change.
    Append(engine, session, TestTokens(7));
    EXPECT_EQ(Append(engine, fork, rest), expected) << "fork at " << cut;
    session.Rewind(here);
    EXPECT_EQ(session.position(), static_cast<int64_t>(cut));
    EXPECT_EQ(Append(engine, session, rest), expected) << "rewind to " << cut;
    Session loaded = Session::Load(model, dir / "session.safetensors");
    EXPECT_EQ(loaded.position(), static_cast<int64_t>(cut));
    EXPECT_EQ(Append(engine, loaded, rest), expected) << "load at " << cut;
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(EveryMixer, BatchMatesDoNotInfluenceEachOther) {
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kInt8, WeightFormat::kInt4}) {
    const auto model = Model::Untrained(TinyConfig(GetParam()), 1, format);
    Engine alone(model, 1), together(model, 2);
    constexpr size_t kSessions = 9;
    std::vector<Session> batch, single;
    for (size_t i = 0; i < kSessions; ++i) {
      batch.emplace_back(model);
      single.emplace_back(model);
    }
    const std::vector<int32_t> tokens = TestTokens(200);
    for (size_t round = 0; round < 4; ++round) {
      std::vector<Feed> feeds;
      // Prompts of all lengths beside single steps.
      for (size_t i = 0; i < kSessions; ++i)
        feeds.push_back({&batch[i], std::span(tokens).subspan(i + round, i % 3 == round ? 1 + 20 * i : 1)});
      together.Run(feeds);
      for (size_t i = 0; i < kSessions; ++i) {
        const auto logits = together.Logits(i);
        EXPECT_EQ(Append(alone, single[i], feeds[i].tokens), Logits(logits.begin(), logits.end()));
      }
    }
  }
}

TEST_P(EveryMixer, AllLogitsAreThoseOfTheSteps) {
  const auto model = Model::Untrained(TinyConfig(GetParam()), 1, WeightFormat::kF32);
  Engine engine(model, 2);
  const std::vector<int32_t> tokens = TestTokens(600);
  Session whole(model), steps(model);
  const Feed feed = {&whole, tokens, Want::kAll};
  engine.Run({&feed, 1});
  const Logits all(engine.Logits(0).begin(), engine.Logits(0).end());
  const auto vocabulary = static_cast<size_t>(model->config().vocab_size);
  ASSERT_EQ(all.size(), 600 * vocabulary);
  for (size_t t = 0; t < 600; ++t) {
    const Logits one = Append(engine, steps, std::span(tokens).subspan(t, 1));
    ASSERT_TRUE(std::equal(one.begin(), one.end(), all.begin() + static_cast<std::ptrdiff_t>(t * vocabulary)))
        << t;
  }
}

struct CountingObserver : StepObserver {
  void Observe(const MemoryStep& step, const StepFigures& figures) override {
    ++steps;
    last_token = step.token;
    EXPECT_GE(figures.write, 0);
    written += figures.write;
    EXPECT_LE(std::abs(figures.answer), 1 + 1e-9);
  }
  int64_t steps = 0, last_token = -1;
  double written = 0;
};

TEST_P(EveryMixer, AnObserverDoesNotChangeTheResult) {
  const auto model = Model::Untrained(TinyConfig(GetParam()), 1, WeightFormat::kF32);
  Engine engine(model, 2);
  const std::vector<int32_t> tokens = TestTokens(20);
  Session plain(model), observed(model);
  const Logits expected = Append(engine, plain, tokens);
  CountingObserver observer;
  const Feed feed = {&observed, tokens, Want::kLast, &observer};
  engine.Run({&feed, 1});
  EXPECT_EQ(Logits(engine.Logits(0).begin(), engine.Logits(0).end()), expected);
  const model::ModelConfig& config = model->config();
  EXPECT_EQ(observer.steps, 20 * 2 * (config.HasMemory(0) + config.HasMemory(1)));
  EXPECT_EQ(observer.last_token, config.HasMemory() ? 19 : -1);
  EXPECT_EQ(observer.written > 0, config.HasMemory());
}

// Measured by the allocator, not by Session::Bytes(); sanitizers do not count.
TEST(Session, CostsItsStateAndLittleMore) {
  const model::ModelConfig config = TinyConfig("lattice_dec");
  const auto model = Model::Untrained(config, 1, WeightFormat::kF32);
  constexpr int64_t kSessions = 500;
  std::vector<Session> sessions;
  sessions.reserve(kSessions);
  const auto in_use = [] { return static_cast<int64_t>(::mallinfo2().uordblks + ::mallinfo2().hblkhd); };
  const int64_t before = in_use();
  for (int64_t i = 0; i < kSessions; ++i) sessions.emplace_back(model);
  const int64_t each = (in_use() - before) / kSessions + static_cast<int64_t>(sizeof(Session));
  EXPECT_LE(each, model::StateBytes(config, 0) + (16 << 10));
}

class ConstantState : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Session, ConstantState,
                         testing::Values("lattice_dec", "lattice_dec+window", "transformer+window"),
                         [](const auto& mixer) { return model::TestName(mixer.param); });

TEST_P(ConstantState, SizeDoesNotGrow) {
  const auto model = Model::Untrained(TinyConfig(GetParam()), 1, WeightFormat::kF32);
  Engine engine(model, 1);
  Session session(model);
  const int64_t before = session.Bytes();
  for (int i = 0; i < 40; ++i) Append(engine, session, TestTokens(500));
  EXPECT_EQ(session.Bytes(), before);
  EXPECT_EQ(session.position(), 20000);
  session.Reset();
  EXPECT_EQ(session.position(), 0);
  EXPECT_EQ(session.state().fixed, Session(model).state().fixed);
}

TEST(Session, ShowsItsMemory) {
  const auto model = Model::Untrained(TinyConfig("deltanet"), 1, WeightFormat::kF32);
  Engine engine(model, 1);
  Session session(model);
  EXPECT_EQ(session.Memory(1, 1).size(), 12u * 20);
  EXPECT_TRUE(
      std::all_of(session.Memory(1, 1).begin(), session.Memory(1, 1).end(), [](float x) { return x == 0; }));
  Append(engine, session, TestTokens(3));
  EXPECT_TRUE(
      std::any_of(session.Memory(1, 1).begin(), session.Memory(1, 1).end(), [](float x) { return x != 0; }));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { session.Memory(2, 0); }), {"layer 2", "2 layers of 2 heads"}));
}

// Until a token has left the window, a layer with one is a layer of the transformer with the same weights, bit for bit;
// afterwards it is not.
TEST(Session, AWindowIsExactUntilATokenLeavesIt) {
  model::ModelConfig config = TinyConfig("lattice_dec+window");
  model::ModelConfig whole = config;
  whole.mixer = "transformer";
  const auto joined = Model::Untrained(config, 1, WeightFormat::kF32);
  const auto full = Model::Untrained(whole, 1, WeightFormat::kF32);
  Engine a(joined, 1), b(full, 1);
  Session s(joined), t(full);
  const std::vector<int32_t> tokens = TestTokens(9);
  const auto exact = static_cast<size_t>(config.window + config.sinks);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Logits x = Append(a, s, {&tokens[i], 1}), y = Append(b, t, {&tokens[i], 1});
    EXPECT_EQ(x == y, i < exact) << i;
  }
}

TEST(Session, LayersThatDifferShowTheirMemories) {
  const auto model = Model::Untrained(TinyConfig("lattice_dec,transformer"), 1, WeightFormat::kF32);
  const Session session(model);
  EXPECT_EQ(session.Memory(0, 1).size(), 12u * 20);
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { session.Memory(1, 0); }), {"layer 1 is attention"}));
}

TEST(Engine, RefusesWrongFeeds) {
  const auto model = Model::Untrained(TinyConfig("lattice_dec"), 1, WeightFormat::kF32);
  const auto other = Model::Untrained(TinyConfig("lattice_dec"), 2, WeightFormat::kF32);
  Engine engine(model, 1);
  Session session(model), stranger(other);
  const std::vector<int32_t> good = {1, 2};
  const auto error = [&](std::vector<Feed> feeds) { return io::ErrorOf([&] { engine.Run(feeds); }); };
  EXPECT_TRUE(io::Says(error({{&session, {}}}), {"no tokens", "at least one"}));
  EXPECT_TRUE(io::Says(error({{nullptr, good}}), {"no session"}));
  EXPECT_TRUE(io::Says(error({{&stranger, good}}), {"another model"}));
  EXPECT_TRUE(io::Says(error({{&session, good}, {&session, good}}), {"twice"}));
  for (const int32_t bad : {-1, 67, 1 << 30}) {
    const std::vector<int32_t> tokens = {1, bad};
    EXPECT_TRUE(io::Says(error({{&session, tokens}}), {"outside the vocabulary of 67"}));
  }
  EXPECT_EQ(session.position(), 0) << "a refused feed changes nothing";
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { session.Rewind(Snapshot()); }), {"empty"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { session.Rewind(stranger.Checkpoint()); }), {"another model"}));
  engine.Run({});
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { engine.Logits(0); }), {"no feed 0"}));
}

}  // namespace
}  // namespace lattice::runtime
