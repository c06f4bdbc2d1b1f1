#include "text/bytes.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lattice::text {
namespace {

TEST(Bytes, AreTheIds) {
  const BytesTokenizer tokenizer;
  EXPECT_EQ(tokenizer.vocab_size(), 257);
  EXPECT_EQ(tokenizer.kind(), "bytes");
  EXPECT_EQ(tokenizer.special().eot, 256);
  EXPECT_EQ(tokenizer.special().bos, -1);
  EXPECT_EQ(tokenizer.Encode(std::string("a\0\xff", 3)), (std::vector<int32_t>{97, 0, 255}));
  EXPECT_TRUE(tokenizer.Encode("").empty());
}

TEST(Bytes, AppendAndRoundTrip) {
  const BytesTokenizer tokenizer;
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  std::vector<int32_t> ids = {256};
  tokenizer.EncodeTo(all, ids);
  EXPECT_EQ(ids.size(), 257u);
  EXPECT_EQ(ids[0], 256);
  EXPECT_EQ(tokenizer.Decode(ids), all) << "the end of text decodes to nothing";
  EXPECT_THROW(tokenizer.Decode(std::vector{257}), Error);
  EXPECT_THROW(tokenizer.Decode(std::vector{-1}), Error);
}

}  // namespace
}  // namespace lattice::text
