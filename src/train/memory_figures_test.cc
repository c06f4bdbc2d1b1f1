#include "train/memory_figures.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "eval/microscope.h"
#include "kernels/registry.h"
#include "nn/probe.h"

namespace lattice::train {
namespace {

model::ModelConfig Tiny(const std::string& mixer) {
  model::ModelConfig config;
  config.mixer = mixer;
  config.vocab_size = 50;
  config.layers = 2;
  config.width = 32;
  config.heads = 2;
  return config;
}

TEST(MemoryFigures, AreInTheirRangesForEveryMixer) {
  for (const std::string_view name : kernels::MemoryNames()) {
    const model::ModelConfig config = Tiny(std::string(name));
    const nn::LanguageModel model(config, 1);
    const MemoryFigures figures = MeasureMemory(model, at::arange(40).unsqueeze(0));
    const kernels::Memory& memory = kernels::FindMemory(name);
    EXPECT_EQ(figures.size(), memory.attention ? 0u : 6u) << name;
    for (const auto& [key, layers] : figures) {
      const bool of_the_state = key == "slot_similarity" || key == "effective_rank";
      const bool defined = of_the_state ? memory.extra_state.empty() : memory.objective.has_value();
      ASSERT_EQ(layers.size(), defined ? 2u : 0u) << name << " " << key;
      for (const double value : layers) {
        EXPECT_GE(value, key == "answer" ? -1 : 0) << name << " " << key;
        EXPECT_LE(value, key == "beta" || key == "write" ? 5 : 1.0001) << name << " " << key;
      }
    }
  }
}

// The runtime measures the same figures on the same weights and tokens, with and without shrinkage.
TEST(MemoryFigures, AreThoseOfTheMicroscope) {
  for (const double lam : {0.0, 0.05}) {
    model::ModelConfig config = Tiny("lattice_dec");
    config.lam = lam;
    const nn::LanguageModel model(config, 1);
    const auto copy = runtime::Model::Make(
        config,
        [&](const model::TensorInfo& info, std::span<float> out) {
          for (const nn::Parameter& parameter : model.parameters()) {
            if (parameter.info.name != info.name) continue;
            const at::Tensor values = parameter.value.detach().contiguous();
            std::copy_n(values.const_data_ptr<float>(), out.size(), out.begin());
          }
        },
        runtime::WeightFormat::kF32);
    std::vector<int32_t> tokens(40);
    std::iota(tokens.begin(), tokens.end(), 0);
    const eval::MemoryRecord record = eval::Examine(copy, tokens, 1, 1);
    MemoryFigures figures = MeasureMemory(model, at::arange(40).unsqueeze(0));
    for (size_t layer = 0; layer < 2; ++layer) {
      double write = 0, answer = 0, beta = 0;
      for (int64_t head = 0; head < 2; ++head) {
        const eval::HeadSummary summary = record.Summary(static_cast<int64_t>(layer), head);
        write += summary.write / 2;
        answer += summary.answer / 2;
        beta += *summary.beta / 2;
      }
      EXPECT_NEAR(figures["write"][layer], write, 1e-4) << lam;
      EXPECT_NEAR(figures["answer"][layer], answer, 1e-4) << lam;
      EXPECT_NEAR(figures["beta"][layer], beta, 1e-4) << lam;
    }
  }
}

TEST(MemoryFigures, TellOrthogonalSlotsFromEqualOnes) {
  const nn::LanguageModel model(Tiny("linear_attention"), 1);
  at::Tensor state0;
  for (const nn::Parameter& parameter : model.parameters()) {
    if (parameter.info.name == "blocks.0.mixer.state0") state0 = parameter.value.detach();
  }
  ASSERT_TRUE(state0.defined());
  const at::Tensor tokens = at::zeros({1, 1}, at::kLong);
  state0.copy_(1000 * at::eye(16).expand({2, 16, 16}));
  MemoryFigures figures = MeasureMemory(model, tokens);
  EXPECT_NEAR(figures["effective_rank"][0], 1, 0.01);
  EXPECT_NEAR(figures["slot_similarity"][0], 0, 0.01);
  state0.fill_(1000);
  figures = MeasureMemory(model, tokens);
  EXPECT_NEAR(figures["effective_rank"][0], 1.0 / 16, 0.01);
  EXPECT_NEAR(figures["slot_similarity"][0], 1, 0.01);
}

}  // namespace
}  // namespace lattice::train
