#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace lattice {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("width", "width"), 0);
  EXPECT_EQ(EditDistance("WIDTH", "width"), 0);
  EXPECT_EQ(EditDistance("widht", "width"), 1);
  EXPECT_EQ(EditDistance("wdth", "width"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(Nearest, FindsTheNearest) {
  const std::vector<std::string_view> names = {"layers", "width",    "heads",
                                               "hidden", "deltanet", "gated_deltanet"};
  EXPECT_EQ(Nearest("widht", names), "width");
  EXPECT_EQ(Nearest("layer", names), "layers");
  EXPECT_EQ(Nearest("head", names), "heads");
  EXPECT_EQ(Nearest("delta_net", names), "deltanet");
  EXPECT_EQ(Nearest("gated", names), "gated_deltanet");
  EXPECT_EQ(Nearest(std::string(1 << 20, 'x'), names).empty(), false);
}

TEST(Nearest, PutsItInASentence) {
  const std::vector<std::string_view> names = {"layers", "width"};
  EXPECT_EQ(DidYouMean("widht", names), "; did you mean \"width\"?");
  EXPECT_EQ(DidYouMean("widht", {}), "");
  EXPECT_EQ(Nearest("x", {}), "");
}

}  // namespace
}  // namespace lattice
