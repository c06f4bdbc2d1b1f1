#include "data/corpus.h"

#include <gtest/gtest.h>

#include "io/testing.h"

namespace lattice::data {
namespace {

std::string Joined(const std::vector<text::Document>& documents) {
  std::string text;
  for (const text::Document& document : documents) text += document.text;
  return text;
}

TEST(Corpus, ADirectoryIsItsTextFilesInOrderOfNames) {
  const io::TestDir dir;
  dir.Put("b.txt", "second\n");
  dir.Put("a.txt", "first\n<|endoftext|>\nalso first\n");
  dir.Put("c.md", "not text");
  const Corpus corpus(dir.path(), true);
  ASSERT_EQ(corpus.documents().size(), 3u);
  EXPECT_EQ(corpus.documents()[2].text, "second\n");
  EXPECT_TRUE(corpus.documents()[2].ended);
  EXPECT_TRUE(corpus.has_markers());

  const Corpus plain(dir.path(), false);
  EXPECT_EQ(plain.documents().size(), 2u);
  EXPECT_FALSE(plain.has_markers());
  EXPECT_NE(plain.hash(), corpus.hash());
}

TEST(Corpus, SaysWhatIsWrong) {
  const io::TestDir dir;
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Corpus(dir / "none", true); }), {"there is no file or directory"}));
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { Corpus(dir.path(), true); }), {"neither token shards nor .txt files"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Corpus(dir.Put("e.txt", ""), true); }), {"e.txt is empty"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Corpus(dir.Put("x.gz", "z"), true); }), {"unpack it"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Corpus("", true); }), {"pass --data FILE"}));
}

TEST(HoldOut, PrefersTheEndOfADocument) {
  const std::string text(100, 'x');
  std::vector<text::Document> documents(20, {text, true});
  const Split split = HoldOut(documents, 0.1);
  EXPECT_EQ(split.train.size(), 18u);
  EXPECT_EQ(split.valid.size(), 2u);
}

TEST(HoldOut, CutsALongDocumentAtALine) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "0123456\n";
  const Split split = HoldOut({{text, true}}, 0.05);
  ASSERT_EQ(split.train.size(), 1u);
  ASSERT_EQ(split.valid.size(), 1u);
  EXPECT_EQ(split.valid[0].text.size(), 40u);
  EXPECT_TRUE(split.train[0].text.ends_with('\n'));
  EXPECT_FALSE(split.train[0].ended);
  EXPECT_TRUE(split.valid[0].ended);
}

TEST(HoldOut, CutsTextWithoutLinesBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "\xC3\xA4";
  for (const double fraction : {0.05, 0.1, 0.11, 0.13}) {
    const Split split = HoldOut({{text, false}}, fraction);
    EXPECT_EQ(split.valid.at(0).text.front(), '\xC3');
  }
}

TEST(HoldOut, LosesNothing) {
  std::vector<std::string> texts;
  for (int i = 1; i < 30; ++i) texts.push_back(std::string(static_cast<size_t>(i * 7 % 13), 'a') + "\n");
  std::vector<text::Document> documents;
  for (const std::string& text : texts) documents.push_back({text, true});
  for (int percent = 0; percent <= 50; percent += 5) {
    const Split split = HoldOut(documents, percent / 100.0);
    EXPECT_EQ(Joined(split.train) + Joined(split.valid), Joined(documents));
    EXPECT_EQ(split.valid.empty(), percent == 0);
    EXPECT_FALSE(split.train.empty());
  }
}

}  // namespace
}  // namespace lattice::data
