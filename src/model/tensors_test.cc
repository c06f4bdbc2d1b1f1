#include "model/tensors.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "io/testing.h"
#include "kernels/registry.h"
#include "model/testing.h"

namespace lattice::model {
namespace {

ModelConfig Preset(std::string_view name, std::string_view mixer) {
  return LoadConfig("configs/" + std::string(name) + ".toml",
                    std::vector{"model.mixer=" + std::string(mixer)})
      .model;
}

bool IsGate(const std::string& name) {
  for (const char* gate : {".gamma.", ".mu.", ".mu_down.", ".mu_up.", ".igate.", ".fgate."}) {
    if (name.find(gate) != std::string::npos) return true;
  }
  return false;
}

struct Published {
  std::string_view mixer;
  int64_t count_110m;
  int64_t count_340m;
};

// The exact parameter counts that the paper's FLOPs imply.
constexpr Published kPublished[] = {
    {"transformer", 84'953'856, 302'433'280},    {"lattice_dec", 85'931'040, 305'235'712},
    {"lattice_sim", 85'820'304, 304'842'112},    {"deltanet", 85'820'304, 304'842'112},
    {"gated_deltanet", 85'931'184, 305'236'096}, {"gla", 86'013'696, 305'259'520},
    {"mamba2", 85'866'672, 304'965'760},
};

TEST(Tensors, CountsEqualThePapers) {
  for (const Published& published : kPublished) {
    SCOPED_TRACE(published.mixer);
    const ParameterCounts small = CountParameters(Preset("110m", published.mixer));
    EXPECT_EQ(small.non_embedding, published.count_110m);
    EXPECT_EQ(small.embedding, 32000 * 768);
    EXPECT_EQ(small.total, small.embedding + small.non_embedding);
    EXPECT_EQ(CountParameters(Preset("340m", published.mixer)).non_embedding, published.count_340m);
  }
}

// C, H, L = 128, 2, 3 as in configs/tiny.toml: the parameters of the other memories relative to a deltanet
// block.
TEST(Tensors, CountsOfTheOtherMixers) {
  const auto count = [](std::string_view mixer) {
    ModelConfig config;
    config.mixer = mixer;
    config.vocab_size = 257;
    return CountParameters(config).non_embedding;
  };
  const int64_t delta = count("deltanet"), gate = 128 * 2 + 2;
  EXPECT_EQ(count("lattice_enc"), count("lattice_dec"));
  EXPECT_EQ(count("ttt"), delta);
  EXPECT_EQ(count("linear_attention"), delta - 3 * gate);
  EXPECT_EQ(count("rwkv7"), delta + 3 * (16 * 128 + 128 * 16 + 128));
  EXPECT_EQ(count("mlstm"), delta + 3 * (gate - 128 * 64));
}

TEST(Tensors, TheTableOf760mAndItsOverride) {
  const auto count = [](std::vector<std::string> overrides) {
    return CountParameters(LoadConfig("configs/760m.toml", overrides).model).non_embedding;
  };
  const int64_t c = 1536, h = 24;
  EXPECT_EQ(count({}), 24 * (4 * c * c + 3 * c * 4096 + 20 * c + 64 * c + 2 * (c * h + h)) + c);
  EXPECT_EQ(count({"model.heads=16", "model.hidden=4328"}),
            24 * (4 * c * c + 3 * c * 4328 + 20 * c + 96 * c + 2 * (c * 16 + 16)) + c);
}

TEST(Tensors, NamesAndShapesOfALatticeBlock) {
  ModelConfig config;
  config.vocab_size = 300;
  config.layers = 1;
  config.slots = 16;
  std::string list;
  for (const TensorInfo& tensor : ModelTensors(config)) {
    list += tensor.name + " " + io::ShapeText(tensor.shape) + (tensor.decay ? " decay\n" : "\n");
  }
  EXPECT_EQ(list,
            "embed.weight [300, 128] decay\n"
            "blocks.0.pre_norm.weight [128]\n"
            "blocks.0.pre_conv.weight [128, 4] decay\n"
            "blocks.0.pre_conv.bias [128]\n"
            "blocks.0.mix_norm.weight [128]\n"
            "blocks.0.mixer.qk.weight [32, 128] decay\n"
            "blocks.0.mixer.conv_q.weight [32, 4] decay\n"
            "blocks.0.mixer.conv_q.bias [32]\n"
            "blocks.0.mixer.conv_k.weight [32, 4] decay\n"
            "blocks.0.mixer.conv_k.bias [32]\n"
            "blocks.0.mixer.v.weight [128, 128] decay\n"
            "blocks.0.mixer.gate.weight [128, 128] decay\n"
            "blocks.0.mixer.gamma.weight [2, 128]\n"
            "blocks.0.mixer.gamma.bias [2]\n"
            "blocks.0.mixer.mu.weight [2, 128]\n"
            "blocks.0.mixer.mu.bias [2]\n"
            "blocks.0.mixer.state0 [2, 16, 64]\n"
            "blocks.0.mixer.out_norm.weight [128]\n"
            "blocks.0.mixer.out_norm.bias [128]\n"
            "blocks.0.mixer.out.weight [128, 128] decay\n"
            "blocks.0.ffn_norm.weight [128]\n"
            "blocks.0.ffn.gate.weight [352, 128] decay\n"
            "blocks.0.ffn.up.weight [352, 128] decay\n"
            "blocks.0.ffn.down.weight [128, 352] decay\n"
            "final_norm.weight [128]\n");
}

TEST(Tensors, NamesOfATransformerBlock) {
  ModelConfig config;
  config.mixer = "transformer";
  config.vocab_size = 300;
  config.layers = 1;
  config.tie_embedding = false;
  std::string list;
  for (const TensorInfo& tensor : ModelTensors(config)) list += tensor.name + "\n";
  EXPECT_EQ(list,
            "embed.weight\nblocks.0.mix_norm.weight\nblocks.0.mixer.q.weight\nblocks.0.mixer.k.weight\n"
            "blocks.0.mixer.v.weight\nblocks.0.mixer.out.weight\nblocks.0.ffn_norm.weight\nblocks.0.ffn.gate."
            "weight\n"
            "blocks.0.ffn.up.weight\nblocks.0.ffn.down.weight\nfinal_norm.weight\nhead.weight\n");
  EXPECT_EQ(CountParameters(config).embedding, 2 * 300 * 128);
}

TEST(Tensors, NamesAreUniqueAndOnlyMatricesAndConvolutionsDecay) {
  for (const kernels::Memory& mixer : kernels::Memories()) {
    SCOPED_TRACE(mixer.name);
    ModelConfig config;
    config.mixer = mixer.name;
    config.vocab_size = 10;
    std::set<std::string> names;
    for (const TensorInfo& tensor : ModelTensors(config)) {
      SCOPED_TRACE(tensor.name);
      EXPECT_TRUE(names.insert(tensor.name).second);
      EXPECT_GT(tensor.Elements(), 0);
      const bool matrix = tensor.name.ends_with("weight") && tensor.shape.size() == 2;
      EXPECT_EQ(tensor.decay, matrix && !IsGate(tensor.name));
    }
  }
}

// docs/checkpoint-format.md lists exactly the tensors that exist.
TEST(Tensors, AreTheDocumentedOnes) {
  std::set<std::string> expected, documented;
  for (const std::string& mixer : MixersAndStacks()) {
    ModelConfig config = WithMixers({}, mixer, 0);
    config.vocab_size = 10;
    config.layers = 1;
    config.tie_embedding = false;
    for (const TensorInfo& tensor : ModelTensors(config)) {
      const bool block = tensor.name.starts_with("blocks.0.");
      expected.insert(block ? StrCat("blocks.i.", tensor.name.substr(9)) : tensor.name);
    }
  }
  const std::string page = io::ReadFile("docs/checkpoint-format.md");
  for (size_t begin = page.find('`'); begin != std::string::npos; begin = page.find('`', begin + 1)) {
    const std::string word = page.substr(begin + 1, page.find('`', begin + 1) - begin - 1);
    for (const char* start : {"blocks.i.", "embed.", "final_norm.", "head."}) {
      if (word.starts_with(start)) documented.insert(word);
    }
  }
  EXPECT_EQ(documented, expected);
}

TEST(Tensors, NeedAVocabularyAndAValidConfig) {
  ModelConfig config;
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { ModelTensors(config); }), {"vocab_size is 0"}));
  config.vocab_size = 10;
  config.heads = 3;
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { ModelTensors(config); }), {"heads = 3", "width = 128"}));
}

}  // namespace
}  // namespace lattice::model
