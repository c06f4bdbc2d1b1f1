#include "io/toml.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/file.h"
#include "io/testing.h"

namespace lattice::io {
namespace {

TEST(Toml, ListsSettingsInOrderWithTheirPlaces) {
  const TomlDocument document = ParseToml(
      "top = 1\n[train]\nsteps = 1_000  # comment\nlr = 1e-3\n[empty]\n[data]\nname = \"x\\ty\"\nflag = "
      "true\n",
      "t.toml");
  ASSERT_EQ(document.settings.size(), 5u);
  EXPECT_EQ(document.settings[0].section, "");
  EXPECT_EQ(document.settings[1].section, "train");
  EXPECT_EQ(document.settings[1].key, "steps");
  EXPECT_EQ(document.settings[1].value, TomlScalar(int64_t{1000}));
  EXPECT_EQ(document.settings[1].line, 3);
  EXPECT_EQ(document.settings[1].column, 1);
  EXPECT_EQ(document.settings[2].value, TomlScalar(1e-3));
  EXPECT_EQ(document.settings[3].value, TomlScalar(std::string("x\ty")));
  EXPECT_EQ(document.settings[4].value, TomlScalar(true));
  ASSERT_EQ(document.sections.size(), 3u);
  EXPECT_EQ(document.sections[1].name, "empty");
  EXPECT_EQ(document.sections[1].line, 5);
}

TEST(Toml, ErrorsHaveLineAndColumn) {
  const auto message = [](std::string_view text) { return ErrorOf([&] { ParseToml(text, "t.toml"); }); };
  EXPECT_TRUE(Says(message("[a]\nx = \n"), {"t.toml:2:"}));
  EXPECT_TRUE(Says(message("[a]\nx = 1\nx = 2\n"), {"t.toml:3:"}));
  EXPECT_TRUE(Says(message("[a]\nx = [1, 2]\n"), {"t.toml:2:1", "\"x\" must be one"}));
  EXPECT_TRUE(Says(message("[a.b]\nx = 1\n"), {"\"b\" must be one"}));
  EXPECT_TRUE(Says(message("[a]\nx = 1979-05-27\n"), {"\"x\" must be one"}));
  // What toml++ does not check by itself.
  for (const std::string_view section : {"[@]", "[", "[\n]", "[[ +a]]", "[ [a]", "[\x01", "[ # a"})
    EXPECT_TRUE(Says(message("x = 1\n" + std::string(section)), {"t.toml:2:", "name of a section"}))
        << section;
  for (const std::string_view foreign : {"\xC3\xA9 = 1", "\xEF\xBB\xAF", "x = \"a\"\xC3\xA9",
                                         "y = '''a''''' \xEF\xAC\x86", "y = \"\\\"\" \xC3\xA9"})
    EXPECT_TRUE(Says(message("x = 1\n" + std::string(foreign)), {"t.toml:2:", "ASCII"})) << foreign;
  const std::string strings =
      "\xEF\xBB\xBFx = \"\xC3\xA9 # \\\" [@] '\" # \xC3\xA9 [@\ny = '\xC3\xA9\"'\n"
      "z = \"\"\"\n[@] \xC3\xA9 \"\"\n\"\"\"\nw = '''\xC3\xA9'\n'''\n";
  EXPECT_EQ(ParseToml(strings, "t.toml").settings.size(), 4u);
  EXPECT_TRUE(Says(message("x = " + std::string(100000, '[')), {"t.toml:1:"}));
  EXPECT_TRUE(Says(message("x = \"\xff\"\n"), {"t.toml:1:"}));
}

TEST(Toml, FormatsSoThatItReadsBack) {
  const std::vector<TomlScalar> values = {true,
                                          false,
                                          int64_t{-5},
                                          std::numeric_limits<int64_t>::max(),
                                          1.0,
                                          0.1,
                                          3e-5,
                                          1e300,
                                          -2.5,
                                          std::numeric_limits<double>::infinity(),
                                          std::string("plain"),
                                          std::string("a\"b\\c\n\x01\x7f\xc3\xa9")};
  for (const TomlScalar& value : values) {
    const std::string text = "x = " + FormatToml(value) + "\n";
    SCOPED_TRACE(text);
    EXPECT_EQ(ParseToml(text, "t.toml").settings.at(0).value, value);
  }
  EXPECT_EQ(FormatToml(0.1), "0.1");
  EXPECT_EQ(FormatToml(1.0), "1.0");
  EXPECT_TRUE(
      std::isnan(std::get<double>(ParseToml("x = " + FormatToml(std::nan("")), "t").settings[0].value)));
}

TEST(Toml, ThreeThousandDamagedFilesDoNotCrash) {
  const std::string whole = ReadFile("configs/110m.toml") + "[x]\n\"a b\" = 'c'\nd = 1.5e3\ne = [1, 2]\n";
  int refused = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    // Damaged twice: the first place may be in a comment.
    const std::string bad = Damaged(Damaged(whole, i) + "\n", 5000 + i * 7);
    refused += ErrorOf([&] { ParseToml(bad, "t.toml"); }) != "no error" ? 1 : 0;
  }
  EXPECT_GT(refused, 1000);
  for (const std::string_view open : {"[", "{a=", "a.", "[["}) {
    std::string deep = "x = ";
    while (deep.size() < 100000) deep += open;
    const std::string message = ErrorOf([&] { ParseToml(deep, "t.toml"); });
    EXPECT_TRUE(Says(message, {"t.toml"}));
    EXPECT_LT(message.size(), 5000u);
  }
}

}  // namespace
}  // namespace lattice::io
