#include "eval/token_pair.h"

#include <gtest/gtest.h>

#include "io/testing.h"

namespace lattice::eval {
namespace {

std::vector<int32_t> Bytes(std::string_view text) {
  std::vector<int32_t> out;
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

TokenPair EncodePair(const text::Tokenizer& tokenizer, const std::string& context,
                     const std::string& continuation, bool add_bos) {
  return PairEncoder(tokenizer, add_bos).Encode(context, continuation);
}

TEST(TokenPair, RemembersTheContextOnly) {
  const auto tokenizer = text::OpenTokenizer("bytes");
  PairEncoder encoder(*tokenizer, false);
  for (const char* context : {"One", "One", "Two", "One "}) {
    for (const char* continuation : {" a", " bc"}) {
      const TokenPair expected = EncodePair(*tokenizer, context, continuation, false);
      const TokenPair pair = encoder.Encode(context, continuation);
      EXPECT_EQ(pair.context, expected.context);
      EXPECT_EQ(pair.continuation, expected.continuation);
    }
  }
}

TEST(TokenPair, SplitsWhereTheContextEnds) {
  const auto tokenizer = text::OpenTokenizer("bytes");
  const TokenPair pair = EncodePair(*tokenizer, "Answer:", " yes", false);
  EXPECT_EQ(pair.context, Bytes("Answer:"));
  EXPECT_EQ(pair.continuation, Bytes(" yes"));
}

TEST(TokenPair, SpaceAtTheEndBelongsToTheContinuation) {
  const auto tokenizer = text::OpenTokenizer("bytes");
  const TokenPair pair = EncodePair(*tokenizer, "One.\u00a0 ", " two", false);
  EXPECT_EQ(pair.context, Bytes("One."));
  EXPECT_EQ(pair.continuation, Bytes("\u00a0  two"));
}

TEST(TokenPair, AnEmptyContextIsTheEndOfText) {
  const auto tokenizer = text::OpenTokenizer("bytes");
  const TokenPair pair = EncodePair(*tokenizer, "  ", "x", false);
  EXPECT_EQ(pair.context, std::vector<int32_t>{tokenizer->special().eot});
  EXPECT_EQ(pair.continuation, Bytes("  x"));
}

TEST(TokenPair, BeginningOfTextNeedsAnId) {
  const auto tokenizer = text::OpenTokenizer("bytes");
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { EncodePair(*tokenizer, "a", "b", true); }), {"--add-bos"}));
}

TEST(TokenPair, TruncatesFromTheLeft) {
  TokenPair pair{{1, 2, 3, 4}, {5, 6, 7}};
  EXPECT_FALSE(Truncate(pair, 6));
  EXPECT_TRUE(Truncate(pair, 4));
  EXPECT_EQ(pair.context, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(pair.continuation, (std::vector<int32_t>{5, 6, 7}));
  EXPECT_TRUE(Truncate(pair, 3));
  EXPECT_EQ(pair.context, (std::vector<int32_t>{4}));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Truncate(pair, 2); }), {"3 tokens", "--max-length 2"}));
}

}  // namespace
}  // namespace lattice::eval
