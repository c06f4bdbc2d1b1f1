// The runtime computes what the torch model computes, for every mixer and option that changes the arithmetic.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <string>

#include "io/file.h"
#include "io/testing.h"
#include "kernels/registry.h"
#include "model/checkpoint.h"
#include "nn/language_model.h"
#include "runtime/engine.h"
#include "runtime/testing.h"

namespace lattice::nn {
namespace {

constexpr int64_t kTokens = 150;

// Every parameter off its initial value: biases and norms too must be where they belong.
void Shake(LanguageModel& lm) {
  c10::NoGradGuard no_grad;
  int64_t i = 0;
  for (const Parameter& parameter : lm.parameters()) {
    const at::Tensor noise =
        (at::arange(parameter.value.numel(), at::kFloat) * 0.7 + static_cast<double>(++i)).sin() * 0.1;
    parameter.value.add_(noise.view(parameter.value.sizes()));
  }
}

void WriteCheckpoint(const LanguageModel& lm, const std::filesystem::path& directory) {
  lm.SaveWeights(directory / model::kWeightsFile);
  io::WriteFileAtomic(directory / model::kConfigFile, model::ModelToJson(lm.config()));
}

std::vector<int32_t> Tokens() {
  std::vector<int32_t> tokens(kTokens);
  for (int64_t i = 0; i < kTokens; ++i)
    tokens[static_cast<size_t>(i)] = static_cast<int32_t>((i * i * 31 + i * 7 + 3) % 67);
  return tokens;
}

at::Tensor TorchLogits(const LanguageModel& lm, const std::vector<int32_t>& tokens) {
  c10::NoGradGuard no_grad;
  at::Tensor ids = at::empty({1, static_cast<int64_t>(tokens.size())}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), ids.mutable_data_ptr<int64_t>());
  return lm.Logits(lm.Forward(ids))[0].contiguous();
}

// Largest difference to torch's logits, over all tokens read in blocks of `block`.
double Difference(const std::filesystem::path& directory, const at::Tensor& expected, size_t block) {
  const auto model = runtime::Model::Load(directory);
  runtime::Engine engine(model, 2);
  runtime::Session session(model);
  const std::vector<int32_t> tokens = Tokens();
  const float* want = expected.const_data_ptr<float>();
  double largest = 0;
  for (std::span<const int32_t> rest = tokens; !rest.empty();) {
    const size_t count = std::min(block, rest.size());
    const runtime::Feed feed = {&session, rest.first(count), runtime::Want::kAll};
    engine.Run({&feed, 1});
    for (const float logit : engine.Logits(0)) largest = std::max(largest, std::abs(double{logit} - *want++));
    rest = rest.subspan(count);
  }
  return largest;
}

// How far torch's float32 logits are from the float64 model's: what no float32 program can be held to.
double Rounding(const LanguageModel& lm, const at::Tensor& logits) {
  const LanguageModel wide(lm.config(), 3, at::kDouble);
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < lm.parameters().size(); ++i)
    wide.parameters()[i].value.copy_(lm.parameters()[i].value);
  return (TorchLogits(wide, Tokens()) - logits).abs().max().item<double>();
}

void ExpectEqual(const model::ModelConfig& config) {
  LanguageModel lm(config, 3);
  Shake(lm);
  const io::TestDir dir;
  WriteCheckpoint(lm, dir.path());
  const at::Tensor expected = TorchLogits(lm, Tokens());
  ASSERT_GT(expected.std().item<float>(), 0.3f) << "the logits are too alike to compare";
  // lattice_enc with weights that were not trained multiplies rounding errors by a thousand. Two float32 programs are then
  // apart by the sum of what each is off, which differs by a few times between CPUs (1.4 times torch's on a Xeon with
  // AVX-512, where 2 in all were too few).
  const double bound = std::max(1e-4, config.mixer == "lattice_enc" ? 4 * Rounding(lm, expected) : 0.0);
  EXPECT_LT(Difference(dir.path(), expected, kTokens), bound);
  EXPECT_LT(Difference(dir.path(), expected, 1), bound);
}

class RuntimeParity : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registry, RuntimeParity, testing::ValuesIn(runtime::AllMixers()),
                         [](const auto& mixer) { return model::TestName(mixer.param); });

TEST_P(RuntimeParity, LogitsEqualTorchs) { ExpectEqual(runtime::TinyConfig(GetParam())); }

TEST_P(RuntimeParity, WithEveryOption) {
  model::ModelConfig config = runtime::TinyConfig(GetParam());
  config.tie_embedding = false;
  config.conv_width = 3;
  config.norm_eps = 1e-5;
  if (config.HasMemory() && config.block == model::BlockKind::kPaper) {
    config.conv_activation = model::Activation::kSilu;
    config.v_norm = model::VectorNorm::kL2;
    config.rope_period = 16;
    config.qk_norm = model::VectorNorm::kScale;
  }
  config.rope_type = model::RopeType::kLinear;
  config.rope_factor = 2;
  if (kernels::FindMemory(config.Layer(0).mixer).Shrinks()) config.lam = 0.01;
  ExpectEqual(config);
}

TEST(RuntimeParityOptions, GroupedHeadsAndLlama3Rotations) {
  model::ModelConfig config = runtime::TinyConfig("transformer");
  config.width = 48;
  config.heads = 6;
  config.kv_heads = 2;
  config.rope_type = model::RopeType::kLlama3;
  config.rope_factor = 4;
  config.rope_context = 64;
  ExpectEqual(config);
}

TEST(RuntimeParityOptions, WithoutNormalization) {
  model::ModelConfig config = runtime::TinyConfig("lattice_dec");
  config.normalize = model::Normalize::kNone;
  config.v_norm = model::VectorNorm::kScale;
  ExpectEqual(config);
}

TEST(RuntimeParityOptions, ValuesOfOneLength) {
  model::ModelConfig config = runtime::TinyConfig("lattice_dec");
  config.v_norm = model::VectorNorm::kRms;
  ExpectEqual(config);
}

}  // namespace
}  // namespace lattice::nn
