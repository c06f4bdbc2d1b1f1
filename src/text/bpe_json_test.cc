#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/json.h"
#include "io/testing.h"
#include "text/bpe.h"
#include "text/byte_characters.h"
#include "text/utf8.h"

namespace lattice::text {
namespace {

using io::ErrorOf;
using io::Says;
using nlohmann::json;

// Bytes as ids 0 to 255, "he" 256, "hel" 257, "el" 258; <|endoftext|> 300 and <tool> 301, which is no special one.
json Small() {
  json vocab = json::object();
  const auto characters = ByteCharacters();
  for (int byte = 0; byte < 256; ++byte) {
    std::string token;
    AppendUtf8(characters[static_cast<size_t>(byte)], token);
    vocab[token] = byte;
  }
  vocab["he"] = 256;
  vocab["hel"] = 257;
  vocab["el"] = 258;
  const auto added = [](int id, const char* content, bool special) {
    return json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", special}};
  };
  return {
      {"added_tokens", {added(300, "<|endoftext|>", true), added(301, "<tool>", false)}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"e l", json::array({"h", "e"}), "he l"}}}}};
}

std::unique_ptr<Tokenizer> Open(const json& tokenizer, const json& config = nullptr) {
  return ParseTokenizerJson(io::DumpJson(tokenizer), config.is_null() ? "" : io::DumpJson(config), "t.json");
}

using Ids = std::vector<int32_t>;

TEST(TokenizerJson, MergesByRankAndTakesAddedTokensFromTheText) {
  const auto tokenizer = Open(Small());
  EXPECT_EQ(tokenizer->vocab_size(), 302);
  EXPECT_EQ(tokenizer->Encode("hel"), (Ids{'h', 258}));
  EXPECT_EQ(tokenizer->Encode("h<tool>e"), (Ids{'h', 301, 'e'}));
  EXPECT_EQ(tokenizer->Decode(Ids{301, 'x', 300}), "<tool>x");
  // Special tokens are text, unless their spelling is asked for.
  EXPECT_EQ(tokenizer->Encode("<|endoftext|>").size(), 13u);
  EXPECT_EQ(tokenizer->EncodeMarked("he<|endoftext|>he"), (Ids{256, 300, 256}));
  EXPECT_EQ(tokenizer->special().eot, 300);
}

TEST(TokenizerJson, WholeWordsAreTokensWhateverTheMergesSay) {
  json whole = Small();
  whole["model"]["ignore_merges"] = true;
  EXPECT_EQ(Open(whole)->Encode("hel"), (Ids{257}));
  EXPECT_EQ(Open(whole)->Encode("help"), (Ids{'h', 258, 'p'}));
}

TEST(TokenizerJson, BytesWithoutATokenAreLeftOut) {
  json gaps = Small();
  gaps["model"]["vocab"].erase("x");
  EXPECT_EQ(Open(gaps)->Encode("hxe"), (Ids{256}));
  EXPECT_EQ(Open(gaps)->Encode("xx"), Ids{});
  gaps["model"]["unk_token"] = "<|endoftext|>";
  EXPECT_TRUE(Says(ErrorOf([&] { Open(gaps); }), {"byte 120", "unknown"}));
}

TEST(TokenizerJson, SpecialTokensAreThoseOfTheConfig) {
  const json config = {{"bos_token", {{"content", "<tool>"}}}, {"eos_token", "<|endoftext|>"}};
  json begins = Small();
  begins["post_processor"] = json::parse(R"({"type": "TemplateProcessing", "single": [
      {"SpecialToken": {"id": "<tool>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]})");
  const auto tokenizer = Open(begins, config);
  EXPECT_EQ(tokenizer->special().bos, 301);
  EXPECT_EQ(tokenizer->special().eos, 300);
  EXPECT_TRUE(tokenizer->special().starts_texts);
  EXPECT_FALSE(Open(Small(), config)->special().starts_texts);
  EXPECT_TRUE(Says(ErrorOf([&] { Open(begins); }), {"bos_token"}));
}

TEST(TokenizerJson, WhatIsNotKnownIsNamed) {
  const auto error = [](const char* pointer, const json& value) {
    json tokenizer = Small();
    tokenizer[json::json_pointer(pointer)] = value;
    return ErrorOf([&] { Open(tokenizer); });
  };
  EXPECT_TRUE(Says(error("/model/type", "Unigram"), {"t.json", "\"Unigram\"", "BPE"}));
  EXPECT_TRUE(Says(error("/model/byte_fallback", true), {"byte_fallback", "tokenizer.model"}));
  EXPECT_TRUE(Says(error("/model/continuing_subword_prefix", "##"), {"continuing_subword_prefix"}));
  EXPECT_TRUE(Says(error("/normalizer", {{"type", "NFKC"}}), {"\"NFKC\""}));
  EXPECT_TRUE(Says(error("/pre_tokenizer", {{"type", "Metaspace"}}), {"\"Metaspace\""}));
  EXPECT_TRUE(Says(error("/pre_tokenizer/add_prefix_space", true), {"add_prefix_space"}));
  const json split = {
      {"type", "Split"}, {"pattern", {{"Regex", "[a-z]+"}}}, {"behavior", "Isolated"}, {"invert", false}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  EXPECT_TRUE(
      Says(error("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}), {"[a-z]+"}));
  EXPECT_TRUE(Says(error("/post_processor", {{"type", "RobertaProcessing"}}), {"RobertaProcessing"}));
  EXPECT_TRUE(Says(error("/added_tokens/0/lstrip", true), {"<|endoftext|>", "lstrip"}));
}

TEST(TokenizerJson, HostileFilesAreRefused) {
  const auto error = [](const char* pointer, const json& value) {
    json tokenizer = Small();
    tokenizer[json::json_pointer(pointer)] = value;
    return ErrorOf([&] { Open(tokenizer); });
  };
  EXPECT_TRUE(Says(error("/model/vocab/he", -1), {"\"he\""}));
  EXPECT_TRUE(Says(error("/model/vocab/he", int64_t{1} << 40), {"\"he\""}));
  EXPECT_TRUE(Says(error("/model/vocab/he", "x"), {"\"he\""}));
  EXPECT_TRUE(Says(error("/model/vocab/he", 257), {"257", "twice"}));
  EXPECT_TRUE(Says(error("/model/merges/0", "el"), {"merge 0"}));
  EXPECT_TRUE(Says(error("/model/merges/0", 5), {"merge 0"}));
  EXPECT_TRUE(Says(error("/model/merges/1", "e l"), {"merge 1", "twice"}));
  EXPECT_TRUE(Says(error("/model/merges/0", "q q"), {"\"qq\"", "not in the vocabulary"}));
  EXPECT_TRUE(Says(error("/model/vocab", json::object()), {"merge 0", "not in the vocabulary"}));
  EXPECT_TRUE(Says(error("/added_tokens/0/content", ""), {"300", "empty"}));
  EXPECT_TRUE(Says(error("/added_tokens/0/id", nullptr), {"<|endoftext|>"}));
  EXPECT_TRUE(Says(error("/model", 1), {"model"}));
  const std::string whole = io::DumpJson(Small());
  for (uint64_t i = 0; i < 500; ++i)
    (void)ErrorOf([&] { ParseTokenizerJson(io::Damaged(whole, i), "", "damaged"); });
}

// What the regular expressions of the published models match, as the `re` of a program that has them says.
TEST(TokenizerJson, WordsOfEverySplit) {
  const auto words = [](std::string_view text, WordSplit split) {
    std::vector<std::string> out;
    while (!text.empty()) {
      const size_t length = FirstWord(text, split);
      out.emplace_back(text.substr(0, length));
      text.remove_prefix(length);
    }
    return out;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("a 12  3", WordSplit::kDigits), (Words{"a", " ", "1", "2", "  ", "3"}));
  EXPECT_EQ(words("it's  ok", WordSplit::kDigits), (Words{"it", "'s", " ", " ok"}));
  EXPECT_EQ(words("I'LL go(now)\n\n x", WordSplit::kLlama3),
            (Words{"I", "'LL", " go", "(now", ")\n\n", " x"}));
  EXPECT_EQ(words("12345 6", WordSplit::kLlama3), (Words{"123", "45", " ", "6"}));
  EXPECT_EQ(words("12345", WordSplit::kQwen2), (Words{"1", "2", "3", "4", "5"}));
  EXPECT_EQ(words("a \n \n  b", WordSplit::kLlama3), (Words{"a", " \n \n", " ", " b"}));
}

}  // namespace
}  // namespace lattice::text
