#include "eval/python_text.h"

#include <gtest/gtest.h>

#include <string>

namespace lattice::eval {
namespace {

TEST(PythonText, StripsUnicodeWhiteSpace) {
  EXPECT_EQ(Strip(" \t\n a b \u00a0\u3000"), "a b");
  EXPECT_EQ(Strip("\u2028x\x1f"), "x");
  EXPECT_EQ(Strip(" \n "), "");
  EXPECT_EQ(Strip("\u200b"), "\u200b");  // the zero-width space is none
}

TEST(PythonText, CountsTrailingSpaceInBytes) {
  EXPECT_EQ(TrailingSpace("a  "), 2u);
  EXPECT_EQ(TrailingSpace("a\u00a0"), 2u);
  EXPECT_EQ(TrailingSpace("a\u3000 "), 4u);
  EXPECT_EQ(TrailingSpace("caf\u00e9"), 0u);
  EXPECT_EQ(TrailingSpace("\xa0"), 0u);  // half a character
  EXPECT_EQ(TrailingSpace(""), 0u);
}

TEST(PythonText, LengthIsInCodePoints) {
  EXPECT_EQ(CodePoints("caf\u00e9"), 4);
  EXPECT_EQ(CodePoints("\U0001F600"), 1);
  EXPECT_EQ(CodePoints(""), 0);
}

TEST(PythonText, CapitalizeLowersTheRest) {
  EXPECT_EQ(Capitalize("he Uses a MAC"), "He uses a mac");
  EXPECT_EQ(Capitalize("\u00e9T\u00c9"), "\u00c9t\u00e9");
  EXPECT_EQ(Capitalize("\u0434\u0410"), "\u0414\u0430");
  EXPECT_EQ(Capitalize("\u01c6"), "\u01c5");  // title case is not upper case
  EXPECT_EQ(Capitalize(""), "");
  EXPECT_EQ(Capitalize("\xff"
                       "A"),
            "\xff"
            "a");
}

// Expected texts are Python's own answers.
TEST(PythonText, CapitalizeMapsOneCharacterToSeveral) {
  EXPECT_EQ(Capitalize("\u00dfTRASSE"), "Sstrasse");        // sharp s
  EXPECT_EQ(Capitalize("\ufb01NE"), "Fine");                // the ligature fi
  EXPECT_EQ(Capitalize("\u0149A"), "\u02bcNa");             // n with apostrophe
  EXPECT_EQ(Capitalize("\u0390x"), "\u0399\u0308\u0301x");  // iota with two accents
  EXPECT_EQ(Capitalize("A\u0130B"), "Ai\u0307b");           // I with dot above
  EXPECT_EQ(Capitalize("\u1f88\u1f80"), "\u1f88\u1f80");    // has a title case of its own
}

TEST(PythonText, CapitalizeKnowsAFinalSigma) {
  EXPECT_EQ(Capitalize("\u039f\u0394\u039f\u03a3"), "\u039f\u03b4\u03bf\u03c2");
  EXPECT_EQ(Capitalize("\u039f\u03a3 \u03a3"), "\u039f\u03c2 \u03c3");  // alone: not final
  EXPECT_EQ(Capitalize("\u0391\u03a3\u0391"), "\u0391\u03c3\u03b1");    // inside a word
  EXPECT_EQ(Capitalize("A'\u03a3'\u0301 b"), "A'\u03c2'\u0301 b");      // marks are ignored
  EXPECT_EQ(Capitalize("A\u03a3'B"), "A\u03c3'b");
  EXPECT_EQ(Capitalize("\u03a3\u03a3"), "\u03a3\u03c2");
}

TEST(PythonText, ReplaceIsOnePass) {
  EXPECT_EQ(Replace("a    b", "  ", " "), "a  b");
  EXPECT_EQ(Replace("   ", "  ", " "), "  ");
  EXPECT_EQ(Replace("x [title] y", " [title]", ". "), "x.  y");
}

}  // namespace
}  // namespace lattice::eval
