#include "foreign/llama.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/testing.h"
#include "model/tensors.h"

namespace lattice::foreign {
namespace {

using io::ErrorOf;
using io::Says;
using nlohmann::json;

json Config() {
  return {{"model_type", "llama"},        {"vocab_size", 100},
          {"num_hidden_layers", 2},       {"hidden_size", 48},
          {"num_attention_heads", 6},     {"num_key_value_heads", 2},
          {"intermediate_size", 64},      {"rms_norm_eps", 1e-5},
          {"tie_word_embeddings", true},  {"rope_theta", 50000.0},
          {"max_position_embeddings", 64}};
}

TEST(Llama, ConfigsComeBackAsTheyWere) {
  json scaled = Config();
  scaled["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 32}};
  json linear = Config();
  linear["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  for (const json& given : {Config(), scaled, linear}) {
    const model::ModelConfig ours = ConfigFromLlama(given, "config.json");
    EXPECT_EQ(ours.kv_heads, 2);
    EXPECT_EQ(ours.rope_theta, 50000);
    const json back = LlamaFromConfig(ours, "float32", 64);
    EXPECT_EQ(ConfigFromLlama(back, "back"), ours);
    json old = back;  // what versions before rope_parameters read
    old.erase("rope_parameters");
    EXPECT_EQ(ConfigFromLlama(old, "old"), ours);
  }
}

TEST(Llama, WhatIsNotKnownIsNamed) {
  const auto error = [](const char* key, const json& value) {
    json config = Config();
    config[key] = value;
    return ErrorOf([&] { ConfigFromLlama(config, "config.json"); });
  };
  EXPECT_TRUE(Says(error("model_type", "gemma3"), {"config.json", "\"gemma3\"", "llama and mistral"}));
  EXPECT_TRUE(Says(error("rope_scaling", {{"rope_type", "yarn"}, {"factor", 2.0}}), {"\"yarn\"", "llama3"}));
  EXPECT_TRUE(Says(error("rope_parameters", {{"rope_type", "longrope"}}), {"\"longrope\""}));
  EXPECT_TRUE(Says(error("rope_parameters", {{"rope_type", "linear"}}), {"factor"}));
  EXPECT_TRUE(Says(error("hidden_act", "gelu"), {"\"gelu\"", "silu"}));
  EXPECT_TRUE(Says(error("attention_bias", true), {"biases"}));
  EXPECT_TRUE(Says(error("head_dim", 16), {"head_dim", "16"}));
  EXPECT_TRUE(Says(error("num_key_value_heads", 4), {"kv_heads", "does not divide"}));
  EXPECT_TRUE(Says(error("num_attention_heads", 0), {"heads", "at least 1"}));
  EXPECT_TRUE(Says(error("num_hidden_layers", int64_t{1} << 40), {"layers", "at most"}));
  EXPECT_TRUE(Says(error("hidden_size", "wide"), {"hidden_size"}));
  EXPECT_TRUE(Says(ErrorOf([] { ConfigFromLlama(json::array(), "config.json"); }), {"must be an object"}));
}

TEST(Llama, EveryTensorHasAName) {
  model::ModelConfig config = ConfigFromLlama(Config(), "config.json");
  config.tie_embedding = false;
  for (const model::TensorInfo& info : model::ModelTensors(config)) {
    EXPECT_FALSE(HuggingFaceName(info.name).empty());
    EXPECT_FALSE(GgufName(info.name).empty());
  }
  EXPECT_EQ(HuggingFaceName("blocks.11.mixer.q.weight"), "model.layers.11.self_attn.q_proj.weight");
  EXPECT_EQ(GgufName("blocks.1.ffn.down.weight"), "blk.1.ffn_down.weight");
  EXPECT_TRUE(Says(ErrorOf([] { HuggingFaceName("blocks.0.mixer.state0"); }), {"no tensor"}));
  config.mixer = "lattice_dec";
  EXPECT_TRUE(Says(ErrorOf([&] { LlamaFromConfig(config, "float32", 64); }), {"lattice_dec"}));
}

}  // namespace
}  // namespace lattice::foreign
