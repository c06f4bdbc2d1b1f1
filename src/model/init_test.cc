#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "model/tensors.h"

namespace lattice::model {
namespace {

std::vector<float> Filled(const TensorInfo& info, uint64_t seed = 1) {
  std::vector<float> values(static_cast<size_t>(info.Elements()), std::nanf(""));
  FillInit(info, seed, values);
  return values;
}

TensorInfo Tensor(std::string name, std::vector<int64_t> shape, Init init) {
  return {std::move(name), std::move(shape), Part::kMixer, true, init};
}

const TensorInfo& Find(const std::vector<TensorInfo>& tensors, std::string_view name) {
  for (const TensorInfo& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  Fail("no tensor ", name);
}

TEST(Init, DependsOnSeedAndNameOnly) {
  const TensorInfo a = Tensor("a", {10, 10}, {InitKind::kNormal, 0.02, 0});
  const TensorInfo b = Tensor("b", a.shape, a.init);
  EXPECT_EQ(Filled(a), Filled(a));
  EXPECT_NE(Filled(a), Filled(a, 2));
  EXPECT_NE(Filled(a), Filled(b));
}

TEST(Init, MixersShareTheirCommonStart) {
  ModelConfig dec, delta;
  dec.vocab_size = delta.vocab_size = 50;
  delta.mixer = "deltanet";
  for (const char* name : {"embed.weight", "blocks.2.mixer.qk.weight", "blocks.1.ffn.down.weight"}) {
    EXPECT_EQ(Filled(Find(ModelTensors(dec), name)), Filled(Find(ModelTensors(delta), name))) << name;
  }
}

TEST(Init, StatesAreUnitSlotsWhereZeroIsInvalid) {
  ModelConfig config;
  config.vocab_size = 50;
  const TensorInfo state = Find(ModelTensors(config), "blocks.0.mixer.state0");
  const std::vector<float> values = Filled(state);
  for (size_t slot = 0; slot < values.size(); slot += 64) {
    double square = 0;
    for (size_t i = 0; i < 64; ++i) square += static_cast<double>(values[slot + i]) * values[slot + i];
    EXPECT_NEAR(square, 1.0, 1e-5);
  }
  config.mixer = "deltanet";
  for (const float x : Filled(Find(ModelTensors(config), "blocks.0.mixer.state0"))) EXPECT_EQ(x, 0.0f);
  config.state_init = StateInit::kSphere;
  EXPECT_EQ(Filled(Find(ModelTensors(config), "blocks.0.mixer.state0")), values);
}

TEST(Init, AlignedSlotsAreOneUnitVector) {
  ModelConfig config;
  config.vocab_size = 50;
  config.state_init = StateInit::kAligned;
  ASSERT_EQ(config.HeadDim(), 64);
  for (const float x : Filled(Find(ModelTensors(config), "blocks.0.mixer.state0"))) EXPECT_EQ(x, 0.125f);
}

TEST(Init, GatesStartAtTheirBiases) {
  ModelConfig config;
  config.vocab_size = 50;
  config.gamma_bias = -1.5;
  config.mu_bias = 3;
  EXPECT_EQ(Filled(Find(ModelTensors(config), "blocks.0.mixer.gamma.bias")), std::vector<float>(2, -1.5f));
  EXPECT_EQ(Filled(Find(ModelTensors(config), "blocks.0.mixer.mu.bias")), std::vector<float>(2, 3.0f));
  config.mixer = "mlstm";
  EXPECT_EQ(Filled(Find(ModelTensors(config), "blocks.0.mixer.igate.bias")), std::vector<float>(2, -1.5f));
  EXPECT_EQ(Filled(Find(ModelTensors(config), "blocks.0.mixer.fgate.bias")), std::vector<float>(2, 3.0f));
}

TEST(Init, SpecialKindsHaveTheirRanges) {
  for (const float x : Filled(Tensor("x", {1000}, {InitKind::kInverseSoftplus, 1e-3, 1e-1}))) {
    const double step = std::log1p(std::exp(static_cast<double>(x)));
    EXPECT_GE(step, 0.99e-3);
    EXPECT_LE(step, 1.01e-1);
  }
  for (const float x : Filled(Tensor("x", {1000}, {InitKind::kLogUniform, 1, 16}))) {
    EXPECT_GE(x, 0.0f);
    EXPECT_LE(x, std::log(16.0f));
  }
  for (const float x : Filled(Tensor("x", {1000}, {InitKind::kUniform, -0.5, 0.5})))
    EXPECT_LE(std::abs(x), 0.5f);
}

TEST(Init, ResidualProjectionsShrinkWithDepth) {
  ModelConfig config;
  config.vocab_size = 50;
  config.layers = 8;
  EXPECT_DOUBLE_EQ(Find(ModelTensors(config), "blocks.0.mixer.out.weight").init.a, 0.02 / 4);
  EXPECT_DOUBLE_EQ(Find(ModelTensors(config), "blocks.0.mixer.v.weight").init.a, 0.02);
}

TEST(Init, RefusesABufferOfAnotherSize) {
  std::vector<float> small(5);
  EXPECT_THROW(FillInit(Tensor("a", {2, 3}, {}), 1, small), Error);
}

}  // namespace
}  // namespace lattice::model
