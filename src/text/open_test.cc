#include <gtest/gtest.h>

#include <set>

#include "io/file.h"
#include "io/testing.h"
#include "text/bpe.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"

namespace lattice::text {
namespace {

using io::ErrorOf;
using io::Says;
using io::TestDir;

std::string TrainedModel() {
  const TestDir dir;
  return TrainSentencePiece(dir.Put("t.txt", io::ReadFile("src/text/open_test.cc")), {.vocab_size = 360})
      .model;
}

TEST(Open, BySpec) {
  const TestDir dir;
  const std::string model = TrainedModel();
  EXPECT_EQ(OpenTokenizer("bytes")->kind(), "bytes");
  EXPECT_EQ(OpenTokenizer(dir.Put("my.model", model))->kind(), "sentencepiece");
  EXPECT_EQ(OpenTokenizer("tests/data/bpe")->kind(), "bpe");
  EXPECT_EQ(OpenTokenizer("tests/data/bpe/vocab.json")->kind(), "bpe");
  dir.Put("gpt.vocab.json", io::ReadFile("tests/data/bpe/vocab.json"));
  dir.Put("gpt.merges.txt", io::ReadFile("tests/data/bpe/merges.txt"));
  EXPECT_EQ(OpenTokenizer(dir / "gpt.vocab.json")->kind(), "bpe");
  dir.Put("tokenizer.model", model);
  EXPECT_EQ(OpenTokenizer(dir.path())->kind(), "sentencepiece");
}

TEST(Open, WhatIsNotThereOrNoTokenizer) {
  const TestDir dir;
  EXPECT_TRUE(Says(ErrorOf([] { OpenTokenizer("byte"); }), {"no tokenizer \"byte\"", "expected bytes"}));
  EXPECT_TRUE(Says(ErrorOf([] { OpenTokenizer(""); }), {"no tokenizer \"\""}));
  EXPECT_TRUE(
      Says(ErrorOf([&] { OpenTokenizer(dir.path()); }), {"has no tokenizer", "lattice_tokenizer.json"}));
  EXPECT_TRUE(
      Says(ErrorOf([&] { OpenTokenizer(dir.Put("x.txt", "hello")); }), {"not a SentencePiece model"}));
  dir.Put("vocab.json", io::ReadFile("tests/data/bpe/vocab.json"));
  EXPECT_TRUE(Says(ErrorOf([&] { OpenTokenizer(dir.path()); }), {"merges.txt", "No such file"}));
}

TEST(Open, SavedTokenizersAreTheSame) {
  const TestDir source;
  const std::string model = source.Put("a.model", TrainedModel()).string();
  std::set<std::string> hashes;
  for (const std::string& spec : {std::string("bytes"), model, std::string("tests/data/bpe")}) {
    SCOPED_TRACE(spec);
    const TestDir dir;
    const auto tokenizer = OpenTokenizer(spec);
    SaveTokenizer(*tokenizer, dir.path());
    const auto again = OpenTokenizer(dir.path());
    EXPECT_EQ(again->kind(), tokenizer->kind());
    EXPECT_EQ(again->hash(), tokenizer->hash());
    EXPECT_EQ(again->vocab_size(), tokenizer->vocab_size());
    EXPECT_EQ(again->Encode("some text"), tokenizer->Encode("some text"));
    EXPECT_EQ(tokenizer->hash().size(), 64u);
    hashes.insert(tokenizer->hash());
  }
  EXPECT_EQ(hashes.size(), 3u);
}

TEST(Open, AChangedCheckpointIsRefused) {
  const TestDir dir;
  SaveTokenizer(*OpenTokenizer("tests/data/bpe"), dir.path());
  dir.Put("merges.txt", "#version: 0.2\nh e\n");
  EXPECT_TRUE(Says(ErrorOf([&] { OpenTokenizer(dir.path()); }), {"hash", "was changed"}));
  dir.Put("lattice_tokenizer.json", R"({"kind":"byte","hash":""})");
  EXPECT_TRUE(Says(ErrorOf([&] { OpenTokenizer(dir.path()); }), {"unknown kind \"byte\"", "\"bytes\""}));
  dir.Put("lattice_tokenizer.json", R"({"kind":"bytes"})");
  EXPECT_TRUE(Says(ErrorOf([&] { OpenTokenizer(dir.path()); }), {"\"hash\" is missing"}));
  dir.Put("lattice_tokenizer.json", "{");
  EXPECT_TRUE(Says(ErrorOf([&] { OpenTokenizer(dir.path()); }), {"lattice_tokenizer.json"}));
}

TEST(Open, SavingReportsWhereItFails) {
  const TestDir dir;
  EXPECT_TRUE(Says(ErrorOf([&] { SaveTokenizer(*OpenTokenizer("bytes"), dir / "none"); }), {"none"}));
}

}  // namespace
}  // namespace lattice::text
