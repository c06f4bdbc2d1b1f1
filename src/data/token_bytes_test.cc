#include "data/token_bytes.h"

#include <gtest/gtest.h>

#include "io/testing.h"
#include "text/bytes.h"
#include "text/sentencepiece.h"

namespace lattice::data {
namespace {

TEST(TokenBytes, SpecialIdsStandForNothing) {
  const TokenBytes bytes((text::BytesTokenizer()));
  EXPECT_EQ(bytes.After(64, 65), 1);
  EXPECT_EQ(bytes.After(256, 65), 1);
  EXPECT_EQ(bytes.After(65, 256), 0);
}

// The byte counts of all tokens sum up to the size of the documents: the space that SentencePiece puts in
// front of each document is not counted.
TEST(TokenBytes, CountWhatTheDocumentsHave) {
  const io::TestDir dir;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "the memory holds a fixed number of slots and writes what is new\n";
  const auto tokenizer = text::ParseSentencePiece(
      text::TrainSentencePiece(dir.Put("text.txt", text), {.vocab_size = 320, .threads = 1}).model,
      "trained");
  const TokenBytes bytes(*tokenizer);
  int64_t expected = 0, counted = 0;
  int32_t previous = tokenizer->special().eot;
  ASSERT_GE(previous, 0);
  for (const std::string document : {"the memory\n", " two  spaces", "slots", "", "caf\u00e9 x"}) {
    expected += static_cast<int64_t>(document.size());
    std::vector<int32_t> ids = tokenizer->Encode(document);
    ids.push_back(tokenizer->special().eot);
    for (const int32_t id : ids) {
      counted += bytes.After(previous, id);
      previous = id;
    }
  }
  EXPECT_EQ(counted, expected);
}

}  // namespace
}  // namespace lattice::data
