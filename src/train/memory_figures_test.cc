#include "train/memory_figures.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/mixers.h"
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
  for (const std::string_view name : model::MixerNames()) {
    const model::ModelConfig config = Tiny(std::string(name));
    const nn::LanguageModel model(config, 1);
    const MemoryFigures figures = MeasureMemory(model, at::arange(40).unsqueeze(0));
    const model::MixerInfo& mixer = model::FindMixer(name);
    EXPECT_EQ(figures.contains("novelty"), !mixer.objective.empty()) << name;
    EXPECT_EQ(figures.contains("effective_rank"), !mixer.attention && name != "mlstm") << name;
    for (const auto& [key, layers] : figures) {
      ASSERT_EQ(layers.size(), 2u) << name << " " << key;
      for (const double value : layers) {
        EXPECT_GE(value, 0) << name << " " << key;
        EXPECT_LE(value, key == "beta" || key == "write_intensity" ? 5 : 1.0001) << name << " " << key;
      }
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
