#include "foreign/gguf_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "foreign/import.h"
#include "foreign/llama.h"
#include "io/directory.h"
#include "io/gguf_testing.h"
#include "io/testing.h"
#include "model/rope.h"
#include "model/tensors.h"
#include "runtime/model.h"
#include "text/byte_characters.h"
#include "text/utf8.h"

namespace lattice::foreign {
namespace {

using io::ErrorOf;
using io::GgufBuilder;
using io::Says;

std::string Floats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

model::ModelConfig SmallConfig() {
  model::ModelConfig config;
  config.mixer = "transformer";
  config.vocab_size = 258;
  config.layers = 1;
  config.width = 16;
  config.heads = 4;
  config.kv_heads = 2;
  config.hidden = 8;
  config.norm_eps = 1e-5;
  config.rope_theta = 1000;
  return config;
}

// The value of element `at` of a tensor, different for all.
float ValueAt(const model::TensorInfo& info, size_t at) {
  return static_cast<float>(info.name.size()) + static_cast<float>(at) / 1024;
}

// A vocabulary of all bytes and two special tokens.
GgufBuilder& WithTokenizer(GgufBuilder& builder) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_end|>"};
  std::vector<int32_t> types = {3, 3};
  for (const char32_t character : text::ByteCharacters()) {
    text::AppendUtf8(character, tokens.emplace_back());
    types.push_back(1);
  }
  return builder.Text("tokenizer.ggml.model", "gpt2")
      .Text("tokenizer.ggml.pre", "smollm")
      .Texts("tokenizer.ggml.tokens", tokens)
      .Int32s("tokenizer.ggml.token_type", types)
      .Texts("tokenizer.ggml.merges", {})
      .Uint32("tokenizer.ggml.eos_token_id", 1)
      .Text("tokenizer.chat_template", "{{ messages }}");
}

GgufBuilder Keys(const model::ModelConfig& config, const std::string& architecture = "llama") {
  GgufBuilder builder;
  builder.Text("general.architecture", architecture)
      .Text("general.license", "apache-2.0")
      .Uint32("llama.context_length", 64)
      .Uint32("llama.block_count", static_cast<uint32_t>(config.layers))
      .Uint32("llama.embedding_length", static_cast<uint32_t>(config.width))
      .Uint32("llama.feed_forward_length", static_cast<uint32_t>(config.hidden))
      .Uint32("llama.attention.head_count", static_cast<uint32_t>(config.heads))
      .Uint32("llama.attention.head_count_kv", static_cast<uint32_t>(config.kv_heads))
      .Float32("llama.attention.layer_norm_rms_epsilon", static_cast<float>(config.norm_eps))
      .Float32("llama.rope.freq_base", static_cast<float>(config.rope_theta));
  return builder;
}

GgufBuilder& WithTensors(GgufBuilder& builder, const model::ModelConfig& config) {
  for (const model::TensorInfo& info : model::ModelTensors(config)) {
    std::vector<float> values(static_cast<size_t>(info.Elements()));
    for (size_t at = 0; at < values.size(); ++at) values[at] = ValueAt(info, at);
    builder.Tensor(GgufName(info.name), {info.shape.begin(), info.shape.end()}, 0, Floats(values));
  }
  return builder;
}

TEST(GgufModel, TensorsAreTakenOverAndRowsOfQueriesAndKeysReordered) {
  const io::TestDir dir;
  GgufBuilder builder = Keys(SmallConfig());
  const auto path = dir.Put("small.gguf", WithTokenizer(WithTensors(builder, SmallConfig())).File());
  const ForeignModel model = OpenGguf(path);
  EXPECT_EQ(model.config, SmallConfig());
  EXPECT_EQ(model.license, "apache-2.0");
  EXPECT_EQ(model.context, 64);
  for (const model::TensorInfo& info : model::ModelTensors(model.config)) {
    std::vector<float> values(static_cast<size_t>(info.Elements()));
    model.fill(info, values);
    const bool turned = info.name.ends_with("mixer.q.weight") || info.name.ends_with("mixer.k.weight");
    for (size_t at = 0; at < values.size(); ++at) {
      // Heads of 4 rows: our rows 0, 1, 2, 3 are the file's 0, 2, 1, 3.
      constexpr size_t kFrom[] = {0, 2, 1, 3};
      const size_t row = at / 16, from = turned ? (row / 4 * 4 + kFrom[row % 4]) * 16 + at % 16 : at;
      ASSERT_EQ(values[at], ValueAt(info, from)) << info.name << " " << at;
    }
  }
}

TEST(GgufModel, ImportsAreModelsOfOurs) {
  const io::TestDir dir;
  GgufBuilder builder = Keys(SmallConfig());
  const auto path = dir.Put("small.gguf", WithTokenizer(WithTensors(builder, SmallConfig())).File());
  dir.Put("LICENSE", "Take it.");
  const Imported imported = Import(path, dir / "model", kernels::WeightFormat::kF32);
  EXPECT_EQ(runtime::Model::Load(dir / "model")->config(), imported.config);
  const auto tokenizer = text::OpenTokenizer((dir / "model").string());
  EXPECT_EQ(tokenizer->kind(), "tokenizer.json");
  EXPECT_EQ(tokenizer->special().eos, 1);
  EXPECT_EQ(tokenizer->special().eot, 0);
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("any text 12")), "any text 12");
  EXPECT_EQ(tokenizer->EncodeMarked("a<|im_end|>"), (std::vector<int32_t>{'a' + 2, 1}));
  const std::optional<Origin> origin = ReadOrigin(dir / "model");
  ASSERT_TRUE(origin.has_value());
  EXPECT_EQ(origin->source, "small.gguf");
  EXPECT_EQ(origin->licenses, (std::vector<std::string>{"LICENSE"}));
  std::filesystem::create_directory(dir / "copy");
  CopyBelongings(dir / "model", dir / "copy");
  EXPECT_EQ(ReadOrigin(dir / "copy")->license, "apache-2.0");
  EXPECT_TRUE(std::filesystem::exists(dir / "copy/LICENSE"));
  EXPECT_TRUE(
      Says(ErrorOf([&] { Import(path, dir / "model", kernels::WeightFormat::kF32); }), {"exists already"}));
}

// The tokenizer's files of a SentencePiece model have no place for a chat template, so it is a file of its own.
TEST(GgufModel, ChatTemplateOfASentencePieceModelIsKept) {
  const io::TestDir dir;
  GgufBuilder builder = Keys(SmallConfig());
  builder.Text("tokenizer.ggml.model", "llama").Text("tokenizer.chat_template", "{{ messages }}");
  const ForeignModel model = OpenGguf(dir.Put("m.gguf", WithTensors(builder, SmallConfig()).File()));
  ASSERT_EQ(model.files.size(), 1u);
  EXPECT_EQ(model.files[0].name, "chat_template.jinja");
  EXPECT_EQ(model.files[0].content, "{{ messages }}");
}

TEST(GgufModel, Llama3FactorsAreRecognised) {
  model::ModelConfig config = SmallConfig();
  config.heads = 2;
  config.kv_heads = 1;
  config.rope_type = model::RopeType::kLlama3;
  config.rope_factor = 8;
  config.rope_context = 256;
  model::ModelConfig plain = config;
  plain.rope_type = model::RopeType::kDefault;
  plain.rope_factor = 1;
  const auto slow = model::RopeRates(config, 4), fast = model::RopeRates(plain, 4);
  std::vector<float> factors;
  for (size_t i = 0; i < slow.size(); ++i) factors.push_back(static_cast<float>(fast[i] / slow[i]));
  const auto opened = [&](const std::vector<float>& values) {
    const io::TestDir dir;
    GgufBuilder builder = Keys(plain);
    builder.Tensor("rope_freqs.weight", {values.size()}, 0, Floats(values));
    return OpenGguf(dir.Put("m.gguf", WithTensors(builder, plain).File())).config;
  };
  EXPECT_EQ(opened(factors), config);
  EXPECT_EQ(opened({1, 1, 1, 1}).rope_type, model::RopeType::kDefault);
  EXPECT_TRUE(Says(ErrorOf([&] { opened({1, 2, 1, 3}); }), {"rope_freqs", "llama3"}));
  EXPECT_TRUE(Says(ErrorOf([&] { opened({1, 1}); }), {"2 factors", "4"}));
}

TEST(GgufModel, WhatIsNotKnownIsNamedAndNothingIsWritten) {
  const io::TestDir dir;
  const auto refused = [&](GgufBuilder builder, bool tensors = true) {
    if (tensors) WithTensors(builder, SmallConfig());
    const auto path = dir.Put("m.gguf", builder.File());
    const std::string error = ErrorOf([&] { Import(path, dir / "model", kernels::WeightFormat::kF32); });
    EXPECT_EQ(dir.CountEntries(), 1) << error;
    return error;
  };
  GgufBuilder good = Keys(SmallConfig()), gemma = Keys(SmallConfig(), "gemma3");
  EXPECT_TRUE(Says(refused(WithTokenizer(gemma)), {"\"gemma3\"", "known is llama"}));
  EXPECT_TRUE(Says(refused(GgufBuilder(good).Text("llama.rope.scaling.type", "yarn")), {"\"yarn\""}));
  EXPECT_TRUE(Says(refused(GgufBuilder(good).Uint32("llama.expert_count", 8)), {"8 experts"}));
  EXPECT_TRUE(Says(refused(GgufBuilder(good).Uint32("llama.rope.dimension_count", 2)), {"dimension_count"}));
  EXPECT_TRUE(Says(refused(GgufBuilder(good).Text("tokenizer.ggml.model", "t5")), {"\"t5\"", "gpt2"}));
  EXPECT_TRUE(Says(refused(good), {"tokenizer.ggml.model", "missing"}));
  EXPECT_TRUE(Says(refused(GgufBuilder(good).Tensor("blk.0.attn_q.bias", {16}, 0, std::string(64, '\0'))),
                   {"blk.0.attn_q.bias", "left out"}));
  EXPECT_TRUE(Says(refused(GgufBuilder(good).Tensor("x", {256}, 11, std::string(110, '\0'))), {"Q3_K"}));
  EXPECT_TRUE(Says(refused(good, false), {"token_embd.weight"}));
}

}  // namespace
}  // namespace lattice::foreign
