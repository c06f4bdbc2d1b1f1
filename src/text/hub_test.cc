#include "text/hub.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "io/testing.h"
#include "text/bpe.h"
#include "text/bytes.h"
#include "text/sentencepiece.h"

// That the ids are the same is shown with the library itself: tests/test_hf_tokenizers.py.
namespace lattice::text {
namespace {

using io::TestDir;
using nlohmann::json;

std::string Trained(int64_t vocab_size) {
  const TestDir dir;
  return TrainSentencePiece(dir.Put("t.txt", io::ReadFile("src/text/hub.cc")), {.vocab_size = vocab_size})
      .model;
}

json Saved(const Tokenizer& tokenizer, std::string_view name) {
  const TestDir dir;
  SaveHubFiles(tokenizer, dir.path());
  return std::filesystem::exists(dir / name) ? io::ReadJson(dir / name) : json();
}

// Merges whose parts or whole are no symbols.
int WrongMerges(const json& model) {
  int wrong = 0;
  for (const json& merge : model["merges"]) {
    const auto left = merge[0].get<std::string>(), right = merge[1].get<std::string>();
    wrong += model["vocab"].contains(left) && model["vocab"].contains(right) &&
                     model["vocab"].contains(left + right)
                 ? 0
                 : 1;
  }
  return wrong;
}

TEST(Hub, BytesAreSymbolsWithoutMerges) {
  const BytesTokenizer bytes;
  const json model = Saved(bytes, "tokenizer.json")["model"];
  EXPECT_EQ(model["vocab"].size(), 256u);
  EXPECT_EQ(model["vocab"]["a"], 'a');
  EXPECT_EQ(model["vocab"]["\xC4\xA0"], ' ') << "U+0120";
  EXPECT_TRUE(model["merges"].empty());
  EXPECT_EQ(Saved(bytes, "tokenizer.json")["added_tokens"][0]["id"], BytesTokenizer::kEot);
  const json config = Saved(bytes, "tokenizer_config.json");
  EXPECT_EQ(config["eos_token"], "<|endoftext|>");
  EXPECT_EQ(config["pad_token"], "<|endoftext|>");
  EXPECT_FALSE(config.contains("bos_token"));
  EXPECT_EQ(config["split_special_tokens"], true);
  EXPECT_EQ(Saved(bytes, "generation_config.json"),
            json({{"bos_token_id", 256}, {"eos_token_id", 256}, {"pad_token_id", 256}}));
}

TEST(Hub, BpeKeepsVocabularyAndOrder) {
  const auto bpe = LoadBpe("tests/data/bpe/vocab.json", "tests/data/bpe/merges.txt");
  const json model = Saved(*bpe, "tokenizer.json")["model"];
  EXPECT_EQ(model["vocab"], io::ReadJson("tests/data/bpe/vocab.json"));
  const std::string file = io::ReadFile("tests/data/bpe/merges.txt");
  ASSERT_GT(model["merges"].size(), 100u);
  size_t at = 0;
  for (const json& merge : model["merges"]) {
    at = file.find(StrCat("\n", merge[0].get<std::string>(), " ", merge[1].get<std::string>(), "\n"), at);
    ASSERT_NE(at, std::string::npos) << merge;
  }
  EXPECT_EQ(Saved(*bpe, "generation_config.json")["eos_token_id"], 0);
}

TEST(Hub, SentencePieceBecomesMerges) {
  const auto tokenizer = ParseSentencePiece(Trained(400), "trained");
  const json file = Saved(*tokenizer, "tokenizer.json");
  EXPECT_EQ(file["model"]["vocab"].size(), 400u);
  EXPECT_EQ(file["model"]["byte_fallback"], true);
  EXPECT_EQ(file["model"]["unk_token"], "<unk>");
  EXPECT_EQ(WrongMerges(file["model"]), 0);
  EXPECT_GT(file["model"]["merges"].size(), 20u);
  for (const json& merge : file["model"]["merges"])
    EXPECT_NE(merge[0].get<std::string>() + merge[1].get<std::string>(), "<|endoftext|>");
  EXPECT_EQ(file["added_tokens"].size(), 4u);
  const json config = Saved(*tokenizer, "tokenizer_config.json");
  EXPECT_EQ(config["bos_token"], "<s>");
  EXPECT_EQ(config["eos_token"], "<|endoftext|>");
}

// The field `number` of the model's normalizer_spec (field 3), set to a number. What is said last counts.
std::string WithNormalizerField(std::string model, char number, char value) {
  const std::string spec = {static_cast<char>(number << 3), value};
  return model + std::string({3 << 3 | 2, static_cast<char>(spec.size())}) + spec;
}

TEST(Hub, WhatTheFormatCannotExpressIsNotWritten) {
  const std::string model = Trained(400);
  constexpr char kRemoveExtraSpaces = 4, kDummyPrefix = 3;
  const auto squeezing = ParseSentencePiece(WithNormalizerField(model, kRemoveExtraSpaces, 1), "squeezing");
  EXPECT_TRUE(Saved(*squeezing, "tokenizer.json").is_null());
  EXPECT_TRUE(Saved(*squeezing, "tokenizer_config.json").is_null());
  EXPECT_EQ(Saved(*squeezing, "generation_config.json")["eos_token_id"], 3);
  const auto bare = ParseSentencePiece(WithNormalizerField(model, kDummyPrefix, 0), "bare");
  EXPECT_EQ(Saved(*bare, "tokenizer.json")["normalizer"]["normalizers"].size(), 1u);
  EXPECT_EQ(Saved(*ParseSentencePiece(model, "m"), "tokenizer.json")["normalizer"]["normalizers"].size(), 2u);
}

}  // namespace
}  // namespace lattice::text
