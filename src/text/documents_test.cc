#include "text/documents.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lattice::text {
namespace {

std::string Split(std::string_view text) {
  std::string out;
  for (const Document& document : SplitDocuments(text)) {
    out += StrCat("[", document.text, document.ended ? "]" : ")");
  }
  return out;
}

TEST(Documents, EndAtMarkerLines) {
  EXPECT_EQ(Split(""), "");
  EXPECT_EQ(Split("one"), "[one)");
  EXPECT_EQ(Split("one\n<|endoftext|>\ntwo\n"), "[one\n][two\n)");
  EXPECT_EQ(Split("one\n<|endoftext|>"), "[one\n]");
  EXPECT_EQ(Split("<|endoftext|>\n<|endoftext|>\nx"), "[][][x)");
  EXPECT_EQ(Split("one\r\n<|endoftext|>\r\ntwo"), "[one\r\n][two)");
}

TEST(Documents, AMarkerInsideALineIsText) {
  EXPECT_EQ(Split("say <|endoftext|>\nx"), "[say <|endoftext|>\nx)");
  EXPECT_EQ(Split("<|endoftext|> x\n<|endoftext|>\ny"), "[<|endoftext|> x\n][y)");
  EXPECT_EQ(Split("<|endoftext|><|endoftext|>\n"), "[<|endoftext|><|endoftext|>\n)");
}

}  // namespace
}  // namespace lattice::text
