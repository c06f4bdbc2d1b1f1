#include "text/bpe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/random.h"
#include "io/file.h"
#include "io/json.h"
#include "io/testing.h"

namespace lattice::text {
namespace {

using io::ErrorOf;
using io::Says;
using io::TestDir;

const std::string kVocab = "tests/data/bpe/vocab.json";
const std::string kMerges = "tests/data/bpe/merges.txt";

TEST(Bpe, EqualsThePublishedAlgorithm) {
  const auto tokenizer = LoadBpe(kVocab, kMerges);
  EXPECT_EQ(tokenizer->vocab_size(), 417);
  for (const auto& test : io::ReadJson("tests/data/bpe/cases.json")) {
    const auto text = test["text"].get<std::string>();
    const auto expected = test["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer->Encode(text), expected) << text;
    EXPECT_EQ(tokenizer->Encode(text), expected) << text << " (remembered)";
    EXPECT_EQ(tokenizer->Decode(expected), text);
  }
}

TEST(Bpe, AnyBytesRoundTrip) {
  const auto tokenizer = LoadBpe(kVocab, kMerges);
  const Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (uint64_t i = 0; i < random.Below(200, round); ++i) {
      text += static_cast<char>(random.Below(round % 2 == 0 ? 256 : 128, 1000 * round + i));
    }
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
  }
}

TEST(Bpe, SpecialIdsComeFromNoTextAndDecodeToNothing) {
  const auto tokenizer = LoadBpe(kVocab, kMerges);
  const int32_t eot = tokenizer->special().eot;
  EXPECT_EQ(eot, 0);
  EXPECT_EQ(tokenizer->special().eos, eot);
  EXPECT_EQ(tokenizer->special().bos, -1);
  for (const int32_t id : tokenizer->Encode("<|endoftext|>")) EXPECT_NE(id, eot);
  EXPECT_EQ(tokenizer->Decode(std::vector{eot}), "");
  EXPECT_THROW(tokenizer->Decode(std::vector{417}), Error);
  EXPECT_THROW(tokenizer->Decode(std::vector{-1}), Error);
}

TEST(Bpe, ALongWordIsNotQuadratic) {
  const auto tokenizer = LoadBpe(kVocab, kMerges);
  std::string word;
  for (int i = 0; i < 300000; ++i) word += "the";
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(word)), word);
}

TEST(Bpe, ThreadsShareOne) {
  const auto tokenizer = LoadBpe(kVocab, kMerges);
  const std::string text = io::ReadFile("src/text/bpe_test.cc");
  const std::vector<int32_t> expected = LoadBpe(kVocab, kMerges)->Encode(text);
  std::vector<std::vector<int32_t>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = tokenizer->Encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

// The error message for these files.
std::string LoadError(const std::string& vocab, const std::string& merges) {
  const TestDir dir;
  return ErrorOf([&] { LoadBpe(dir.Put("vocab.json", vocab), dir.Put("merges.txt", merges)); });
}

std::string Edited(const std::string& from, const std::string& to) {
  std::string vocab = io::ReadFile(kVocab);
  const size_t at = vocab.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return vocab.replace(at, from.size(), to);
}

TEST(Bpe, DamagedFilesDoNotCrash) {
  const std::string vocab = io::ReadFile(kVocab), merges = io::ReadFile(kMerges);
  const TestDir dir;
  int refused = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    try {
      const auto tokenizer = LoadBpe(dir.Put("vocab.json", i % 2 == 0 ? io::Damaged(vocab, i) : vocab),
                                     dir.Put("merges.txt", i % 2 == 1 ? io::Damaged(merges, i) : merges));
      tokenizer->Decode(tokenizer->Encode("Some text to be split, again and again.\xff"));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Bpe, WrongFilesSayWhatIsWrong) {
  const std::string vocab = io::ReadFile(kVocab);
  EXPECT_EQ(LoadError(vocab, ""), "no error");
  EXPECT_EQ(LoadError(vocab, "#version: 0.2\r\nh e\r\n\r\n"), "no error");
  EXPECT_TRUE(Says(LoadError("", ""), {"vocab.json"}));
  EXPECT_TRUE(Says(LoadError("[]", ""), {"object of token: id"}));
  EXPECT_TRUE(Says(LoadError("{}", ""), {"object of token: id"}));
  EXPECT_TRUE(Says(LoadError(R"({"a":0})", ""), {"for the byte 0", "byte-level BPE"}));
  EXPECT_TRUE(Says(LoadError(R"({"a":1})", ""), {"\"a\" has the id 1; expected 0 to 0"}));
  EXPECT_TRUE(Says(LoadError(R"({"a":-1})", ""), {"has the id -1"}));
  EXPECT_TRUE(Says(LoadError(R"({"a":0.5})", ""), {"must be an integer"}));
  EXPECT_TRUE(Says(LoadError(R"({"a":0,"a":0})", ""), {"twice"}));
  EXPECT_TRUE(Says(LoadError(Edited("\"ation\":397", "\"ation\":398"), ""), {"the id 398 is used twice"}));
  EXPECT_TRUE(Says(LoadError(vocab, "h e\nhe\n"), {"merges.txt:2", "two tokens"}));
  EXPECT_TRUE(Says(LoadError(vocab, "h e x\n"), {"merges.txt:1", "two tokens"}));
  EXPECT_TRUE(Says(LoadError(vocab, " e\n"), {"merges.txt:1", "two tokens"}));
  EXPECT_TRUE(Says(LoadError(vocab, "h qqq\n"), {"merges.txt:1", "\"qqq\" is not in the vocabulary"}));
  EXPECT_TRUE(Says(LoadError(vocab, "z z\n"), {"merges.txt:1", "\"zz\" is not in the vocabulary"}));
  EXPECT_TRUE(Says(LoadError(vocab, "h e\nh e\n"), {"merges.txt:2", "occurs twice"}));
  EXPECT_TRUE(Says(ErrorOf([] { LoadBpe("none.json", kMerges); }), {"none.json"}));
}

}  // namespace
}  // namespace lattice::text
