#include "runtime/step_meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "kernels/reference/reference.h"
#include "runtime/engine.h"
#include "runtime/testing.h"

namespace lattice::runtime {
namespace {

// Steps of the float64 oracle (tests/oracle/figures_ref.py) and the figures it measured.
class OracleCase {
 public:
  OracleCase(const io::Safetensors& file, std::string name) : file_(file), name_(std::move(name)) {}

  const io::TensorView& Get(const std::string& key) const { return file_.Get(name_ + "." + key); }
  int64_t tokens() const { return Get("gamma").shape[0]; }

  // The numbers of token t.
  std::vector<double> At(const std::string& key, int64_t t) const {
    const auto values = Get(key).As<double>();
    const size_t size = values.size() / static_cast<size_t>(tokens()), first = static_cast<size_t>(t) * size;
    return {values.begin() + static_cast<std::ptrdiff_t>(first),
            values.begin() + static_cast<std::ptrdiff_t>(first + size)};
  }
  std::vector<float> FloatsAt(const std::string& key, int64_t t) const {
    const std::vector<double> values = At(key, t);
    return {values.begin(), values.end()};
  }

 private:
  const io::Safetensors& file_;
  std::string name_;
};

template <typename Value>
void ExpectNear(const std::vector<Value>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6 * std::max(1.0, want[i])) << i;
}

TEST(StepMeter, AreThoseOfTheOracle) {
  const io::Safetensors file("tests/golden/figures.safetensors");
  const nlohmann::json meta = io::ParseJson(file.metadata().at("json"), "figures");
  ASSERT_EQ(meta["cases"].size(), 12u);
  for (const nlohmann::json& about : meta["cases"]) {
    const OracleCase oracle(file, about["name"]);
    SCOPED_TRACE(about["name"].get<std::string>());
    model::ModelConfig config;
    config.mixer = "lattice_" + about["objective"].get<std::string>();
    config.heads = 1;
    config.width = oracle.Get("v").shape[1];
    config.slots = oracle.Get("k").shape[1];
    config.lam = about["lam"];
    config.normalize = about["normalize"] == "none" ? model::Normalize::kNone : model::Normalize::kToken;
    StepMeter meter((MemoryRule(config)));
    for (int64_t t = 0; t < oracle.tokens(); ++t) {
      SCOPED_TRACE(t);
      const std::vector<float> k = oracle.FloatsAt("k", t), v = oracle.FloatsAt("v", t),
                               before = oracle.FloatsAt("before", t), after = oracle.FloatsAt("after", t);
      MemoryStep step;
      step.k = k;
      step.v = v;
      step.gamma = oracle.FloatsAt("gamma", t)[0];
      step.mu = oracle.FloatsAt("mu", t)[0];
      step.before = before;
      step.after = after;
      meter.Measure(step);
      const StepFigures& figures = meter.figures();
      ExpectNear(std::vector{figures.write}, oracle.At("write", t));
      ExpectNear(std::vector{figures.answer}, oracle.At("answer", t));
      ExpectNear(std::vector{figures.novelty.value()}, oracle.At("novelty", t));
      ExpectNear(std::vector{figures.beta.value()}, oracle.At("beta", t));
      ExpectNear(figures.slot_write, oracle.At("slot_write", t));
      ExpectNear(figures.slot_novelty, oracle.At("slot_novelty", t));
      ExpectNear(figures.slot_beta, oracle.At("slot_beta", t));
    }
  }
}

// beta = s / |Z|, where Z is the state that the reference makes of a step without normalisation.
struct BetaCheck : StepObserver {
  explicit BetaCheck(const model::ModelConfig& config) : rule(config) {}

  void Observe(const MemoryStep& step, const StepFigures& figures) override {
    const std::vector<double> q(step.q.begin(), step.q.end()), k(step.k.begin(), step.k.end()),
        v(step.v.begin(), step.v.end()), before(step.before.begin(), step.before.end());
    const double gamma = step.gamma, mu = step.mu, lam = rule.shrink;
    std::vector<double> y(v.size()), z(before.size());
    const kernels::Sequence one = {0, 0, 1, 0};
    kernels::ForwardProblem<double> p;
    p.heads = p.count = 1;
    p.slots = rule.slots;
    p.width = rule.width;
    p.state_size = rule.slots * rule.width;
    p.sequences = &one;
    p.normalize = kernels::Normalize::kNone;
    p.q.data = q.data();
    p.k.data = k.data();
    p.v.data = v.data();
    p.gates[rule.memory->FindGate(kernels::GateRole::kWrite)].data = &gamma;
    const int forget = rule.memory->FindGate(kernels::GateRole::kForget);
    if (forget >= 0) p.gates[forget].data = &mu;
    if (lam > 0) p.gates[rule.memory->FindGate(kernels::GateRole::kShrink)].data = &lam;
    p.state = before.data();
    p.state_out = z.data();
    p.y.data = y.data();
    kernels::ReferenceForward(rule.memory->name, p);
    for (size_t i = 0; i < k.size(); ++i) {
      double s = 0, length = 0;
      for (size_t c = i * v.size(); c < (i + 1) * v.size(); ++c) {
        s += before[c] * before[c];
        length += z[c] * z[c];
      }
      EXPECT_NEAR(figures.slot_beta[i], std::sqrt(s / length), 1e-5) << step.token << " " << i;
      smallest = std::min(smallest, figures.slot_beta[i]);
      largest = std::max(largest, figures.slot_beta[i]);
    }
  }

  MemoryRule rule;
  float smallest = INFINITY, largest = 0;
};

TEST(StepMeter, BetaOfARunningModelKnowsTheShrinkage) {
  for (const char* mixer : {"lattice_dec", "lattice_enc", "lattice_sim"}) {
    for (const double lam : {0.0, 0.1}) {
      SCOPED_TRACE(StrCat(mixer, " ", lam));
      model::ModelConfig config = TinyConfig(mixer);
      config.lam = lam;
      const auto model = Model::Untrained(config, 1, WeightFormat::kF32);
      Engine engine(model, 2);
      Session session(model);
      BetaCheck check(config);
      const std::vector<int32_t> tokens = TestTokens(30);
      const Feed feed = {&session, tokens, Want::kNone, &check};
      engine.Run({&feed, 1});
      EXPECT_LT(check.smallest, check.largest);
    }
  }
}

TEST(StepMeter, NoveltyAndBetaAreForLatticeOnly) {
  for (const char* mixer : {"deltanet", "gla", "mlstm"}) {
    const model::ModelConfig config = TinyConfig(mixer);
    StepMeter meter((MemoryRule(config)));
    const auto slots = static_cast<size_t>(config.Slots()), width = static_cast<size_t>(config.HeadDim());
    std::vector<float> k(slots, 0), v(width, 0), before(slots * width, 0), after(slots * width, 0);
    k[1] = 1;
    v[0] = 2;
    before[width] = after[width] = 1;
    after[0] = 1;
    MemoryStep step;
    step.k = k;
    step.v = v;
    step.before = before;
    step.after = after;
    meter.Measure(step);
    const StepFigures& figures = meter.figures();
    EXPECT_FALSE(figures.novelty.has_value());
    EXPECT_FALSE(figures.beta.has_value());
    EXPECT_TRUE(figures.slot_novelty.empty() && figures.slot_beta.empty());
    EXPECT_NEAR(figures.answer, 1, 1e-12);              // slot 1 holds the value's direction
    EXPECT_NEAR(figures.write, std::sqrt(0.5), 1e-12);  // slot 0 is all new, slot 1 is as it was
    EXPECT_EQ(figures.slot_write[0], 1);
    EXPECT_EQ(figures.slot_write[1], 0);
    FigureMeans means;
    means.Add(figures);
    EXPECT_FALSE(means.novelty().has_value() || means.beta().has_value());
  }
}

TEST(FigureMeans, WeighNoveltyByWhatWasWritten) {
  StepFigures much, little;
  much.write = 0.8;
  much.answer = 1;
  much.novelty = 0.9;
  much.beta = 0.5;
  much.slot_write = {0.6f, 0.9f};
  little = much;
  little.write = 0.2;
  little.novelty = 0.1;
  little.beta = 1;
  little.slot_write = {0.5f, 0};
  FigureMeans means;
  means.Add(much);
  means.Add(little);
  EXPECT_NEAR(means.write(), 0.5, 1e-12);
  EXPECT_NEAR(means.answer(), 1, 1e-12);
  EXPECT_NEAR(means.beta().value(), 0.75, 1e-12);
  EXPECT_NEAR(means.novelty().value(), (1.5 * 0.9 + 0.5 * 0.1) / 2, 1e-6);
}

}  // namespace
}  // namespace lattice::runtime
