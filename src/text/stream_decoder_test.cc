#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "text/bytes.h"
#include "text/utf8.h"

namespace lattice::text {
namespace {

TEST(StreamDecoder, WaitsForWholeCharacters) {
  const BytesTokenizer tokenizer;
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.Push('a'), "a");
  EXPECT_EQ(decoder.Push(0xF0), "");
  EXPECT_EQ(decoder.Push(0x9F), "");
  EXPECT_EQ(decoder.Push(0x99), "");
  EXPECT_EQ(decoder.Push(0x82), "\xF0\x9F\x99\x82");
  EXPECT_EQ(decoder.Push(256), "");
  EXPECT_EQ(decoder.Finish(), "");
}

TEST(StreamDecoder, ReplacesWhatCanBecomeNoCharacter) {
  const BytesTokenizer tokenizer;
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.Push(0xFF), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.Push(0xC3), "");
  EXPECT_EQ(decoder.Push('x'), "\xEF\xBF\xBDx");
  EXPECT_EQ(decoder.Push(0xE2), "");
  EXPECT_EQ(decoder.Finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.Push('y'), "y");
  EXPECT_THROW(decoder.Push(300), Error);
}

TEST(StreamDecoder, EqualsDecodingAtOnceAndIsAlwaysValid) {
  const BytesTokenizer tokenizer;
  const Random random(3);
  for (uint64_t round = 0; round < 300; ++round) {
    std::string text;
    for (uint64_t i = 0; i < 30; ++i) {
      const uint64_t at = 100 * round + i;
      if (random.Below(3, at) == 0) {
        AppendUtf8(static_cast<char32_t>(random.Below(0xD000, at)), text);
      } else {
        text += static_cast<char>(random.Below(256, at));
      }
    }
    StreamDecoder decoder(tokenizer);
    std::string shown;
    for (const int32_t id : tokenizer.Encode(text)) {
      const std::string part = decoder.Push(id);
      ASSERT_EQ(CountInvalidUtf8(part), 0u);
      shown += part;
    }
    shown += decoder.Finish();
    ASSERT_EQ(shown, ReplaceInvalidUtf8(text));
  }
}

}  // namespace
}  // namespace lattice::text
