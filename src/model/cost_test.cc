#include "model/cost.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/safetensors.h"
#include "kernels/registry.h"
#include "model/tensors.h"

namespace lattice::model {
namespace {

ModelConfig Small(std::string_view mixer) {
  ModelConfig config;
  config.mixer = mixer;
  config.vocab_size = 100;
  config.slots = 16;
  return config;
}

TEST(Cost, StatesOfEachKind) {
  const auto list = [](std::string_view mixer) {
    std::string text;
    for (const StateTensor& state : ModelStates(Small(mixer), 7)) {
      if (state.name.starts_with("blocks.1."))
        text += state.name.substr(9) + io::ShapeText(state.shape) + " ";
    }
    return text;
  };
  EXPECT_EQ(list("lattice_dec"), "pre_conv[3, 128] conv_qk[3, 32] state[2, 16, 64] ");
  EXPECT_EQ(list("mamba2"), "pre_conv[3, 128] conv_qk[3, 32] conv_v[3, 128] state[2, 16, 64] ");
  EXPECT_EQ(list("mlstm"), "pre_conv[3, 128] conv_qk[3, 32] state[2, 16, 64] normalizer[2, 16] max[2] ");
  EXPECT_EQ(list("transformer"), "keys[7, 2, 64] values[7, 2, 64] ");
  ModelConfig window = Small("lattice_dec+window");
  window.block = BlockKind::kAttention;
  window.slots = 0;
  window.window = 5;
  window.sinks = 1;
  for (const int64_t context : {0, 3, 100}) {
    const std::vector<StateTensor> states = ModelStates(window, context);
    ASSERT_EQ(states.size(), 3u * 5);
    std::string text;
    for (size_t i = 0; i < 5; ++i) text += states[i].name.substr(9) + io::ShapeText(states[i].shape) + " ";
    EXPECT_EQ(text, "keys[6, 2, 64] values[6, 2, 64] window_gamma[5, 2] window_mu[5, 2] state[2, 64, 64] ");
  }
}

TEST(Cost, OnlyTheTransformersStateGrows) {
  for (const kernels::Memory& mixer : kernels::Memories()) {
    SCOPED_TRACE(mixer.name);
    const ModelConfig config = Small(mixer.name);
    EXPECT_EQ(StateBytes(config, 10) == StateBytes(config, 1000), !mixer.attention);
  }
  EXPECT_EQ(StateBytes(Small("lattice_dec"), 0), 4 * 3 * (3 * 128 + 3 * 32 + 2 * 16 * 64));
  EXPECT_EQ(StateBytes(Small("transformer"), 100), 4 * 3 * 2 * 100 * 128);
  EXPECT_THROW(StateBytes(Small("transformer"), -1), Error);
  EXPECT_THROW(StateBytes(Small("transformer"), int64_t{1} << 60), Error);
}

TEST(Cost, FlopsAreSixPerParameterPlusTheMixer) {
  ModelConfig config = Small("lattice_dec");
  const ParameterCounts counts = CountParameters(config);
  const Flops flops = FlopsPerToken(config, 512);
  EXPECT_EQ(flops.weights, 2 * counts.total);
  EXPECT_EQ(flops.mixer, 3 * 9 * 2 * 16 * 64);
  EXPECT_EQ(flops.Forward(), flops.weights + flops.mixer);
  EXPECT_EQ(flops.Training(), 6 * counts.total + 3 * flops.mixer);
  config.tie_embedding = false;
  EXPECT_EQ(FlopsPerToken(config, 512).weights, flops.weights);
  EXPECT_EQ(FlopsPerToken(Small("transformer"), 511).mixer, 3 * 4 * 128 * 256);
}

}  // namespace
}  // namespace lattice::model
