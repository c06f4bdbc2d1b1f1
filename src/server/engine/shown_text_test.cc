#include "server/engine/shown_text.h"

#include <gtest/gtest.h>

#include "text/bytes.h"

namespace lattice::server {
namespace {

struct Shown {
  std::string text;
  std::vector<std::string> pieces;
  bool stopped = false;
  int64_t certain = 0;
};

Shown Show(const std::string& text, std::vector<std::string> stops) {
  const text::BytesTokenizer tokenizer;
  ShownText shown(tokenizer, true, std::move(stops));
  Shown out;
  for (const char byte : text) {
    out.stopped = shown.Push(static_cast<unsigned char>(byte));
    out.pieces.push_back(shown.Take());
    if (out.stopped) break;
  }
  if (!out.stopped) out.stopped = shown.Finish(), out.pieces.push_back(shown.Take());
  for (const std::string& piece : out.pieces) out.text += piece;
  out.certain = shown.CertainTokens();
  return out;
}

TEST(ShownText, PassesTextThatHasNoStop) {
  const Shown shown = Show("hello", {"xyz"});
  EXPECT_EQ(shown.text, "hello");
  EXPECT_EQ(shown.pieces[0], "h");
  EXPECT_FALSE(shown.stopped);
  EXPECT_EQ(shown.certain, 5);
}

TEST(ShownText, ShowsNothingOfAStop) {
  const Shown shown = Show("one. END two", {"END"});
  EXPECT_EQ(shown.text, "one. ");
  EXPECT_TRUE(shown.stopped);
  EXPECT_EQ(shown.certain, 5);
}

TEST(ShownText, HoldsBackWhatMayBecomeAStopAndShowsItWhenNot) {
  const Shown shown = Show("a\nUsed", {"\nUser:"});
  EXPECT_EQ(shown.pieces, (std::vector<std::string>{"a", "", "", "", "", "\nUsed", ""}));
  EXPECT_FALSE(shown.stopped);
  EXPECT_EQ(Show("ab", {"abc"}).text, "ab");
}

TEST(ShownText, FindsAStopThatBeginsInsideAnotherBeginning) {
  EXPECT_EQ(Show("aab", {"ab"}).text, "a");
  EXPECT_EQ(Show("ababac", {"abac"}).text, "ab");
  EXPECT_EQ(Show("xyzab", {"zq", "ab"}).text, "xyz");
}

TEST(ShownText, CharactersAreWhole) {
  const Shown shown = Show("\xC3\xA9!", {});
  EXPECT_EQ(shown.pieces, (std::vector<std::string>{"", "\xC3\xA9", "!", ""}));
  EXPECT_EQ(Show("a\xC3", {}).text, "a\xEF\xBF\xBD");
  // A stop text may be a character of several bytes, each a token.
  const Shown stopped = Show("ab\xC3\xA9", {"\xC3\xA9"});
  EXPECT_EQ(stopped.text, "ab");
  EXPECT_EQ(stopped.certain, 2);
}

}  // namespace
}  // namespace lattice::server
