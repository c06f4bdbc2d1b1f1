#include "text/documents.h"

#include <gtest/gtest.h>

#include "io/testing.h"
#include "text/bytes.h"

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

TEST(Documents, EncodeWithTheEndOfTextId) {
  std::vector<int32_t> ids = {7};
  EncodeDocuments(BytesTokenizer(), "a\n<|endoftext|>\nb", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{7, 'a', '\n', 256, 'b'}));
}

class NoEnd : public Tokenizer {
 public:
  NoEnd() : Tokenizer("noend", 10, {}, {}) {}
  void EncodeTo(std::string_view text, std::vector<int32_t>& out) const override {
    out.resize(out.size() + text.size());
  }

 protected:
  void AppendToken(int32_t, bool, std::string&) const override {}
};

TEST(Documents, NeedAnEndOfTextId) {
  std::vector<int32_t> ids;
  EXPECT_NO_THROW(EncodeDocuments(NoEnd(), "abc", ids));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { EncodeDocuments(NoEnd(), "a\n<|endoftext|>\n", ids); }),
                       {"no end-of-text id", "split_documents"}));
}

}  // namespace
}  // namespace lattice::text
