#include "io/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/testing.h"

namespace lattice::io {
namespace {

TEST(Json, ParsesAndGets) {
  const nlohmann::json value = ParseJson(R"({"a": 3, "b": 2.5, "c": "x", "d": true})", "t.json");
  EXPECT_EQ(GetJson<int64_t>(value, "a", "t.json"), 3);
  EXPECT_EQ(GetJson<double>(value, "a", "t.json"), 3.0);
  EXPECT_EQ(GetJson<double>(value, "b", "t.json"), 2.5);
  EXPECT_EQ(GetJson<std::string>(value, "c", "t.json"), "x");
  EXPECT_EQ(GetJson<bool>(value, "d", "t.json"), true);
}

TEST(Json, ErrorsNameSourceAndKey) {
  const nlohmann::json value = ParseJson(R"({"a": 2.5, "big": 18446744073709551615})", "t.json");
  EXPECT_TRUE(Says(ErrorOf([&] { GetJson<int64_t>(value, "a", "t.json"); }),
                   {"t.json", "\"a\"", "an integer", "2.5"}));
  EXPECT_TRUE(Says(ErrorOf([&] { GetJson<int64_t>(value, "big", "t.json"); }), {"an integer"}));
  EXPECT_TRUE(Says(ErrorOf([&] { GetJson<bool>(value, "missing", "t.json"); }), {"\"missing\" is missing"}));
  EXPECT_TRUE(
      Says(ErrorOf([&] { GetJson<bool>(nlohmann::json(3), "a", "t.json"); }), {"expected an object"}));
}

TEST(Json, RefusesWhatIsNotStrict) {
  const auto message = [](std::string_view text) { return ErrorOf([&] { ParseJson(text, "t.json"); }); };
  EXPECT_TRUE(Says(message(""), {"t.json"}));
  EXPECT_TRUE(Says(message("{\"a\": 1,\n \"b\": }"), {"line 2"}));
  EXPECT_FALSE(Says(message("{"), {"json.exception"}));
  EXPECT_TRUE(Says(message("{} {}"), {"t.json"}));
  EXPECT_TRUE(Says(message(R"({"a": 1, "b": {"a": 1, "a": 2}})"), {"\"a\" twice"}));
  EXPECT_TRUE(Says(message(std::string(100000, '[')), {"nested deeper"}));
  EXPECT_TRUE(Says(message(std::string(65, '[') + std::string(65, ']')), {"nested deeper"}));
  EXPECT_TRUE(Says(message("[\"\xff\"]"), {"t.json"}));
  EXPECT_TRUE(Says(message(std::string("{}\0x", 4)), {"NUL"}));
  EXPECT_NO_THROW(ParseJson(std::string(64, '[') + std::string(64, ']'), "t.json"));
  EXPECT_NO_THROW(ParseJson(R"({"a": {"x": 1}, "b": {"x": 1}})", "t.json"));
}

TEST(Json, ReadsFilesAndWrites) {
  const TestDir dir;
  const nlohmann::json value = ReadJson(dir.Put("x.json", R"({"b": [1, 2], "a": "\u00e9"})"));
  EXPECT_EQ(DumpJson(value), "{\"a\":\"\xc3\xa9\",\"b\":[1,2]}");
  EXPECT_EQ(DumpJsonIndented(nlohmann::json{{"a", 1}}), "{\n  \"a\": 1\n}\n");
  EXPECT_TRUE(Says(ErrorOf([&] { ReadJson(dir / "none.json"); }), {"none.json"}));
  EXPECT_THROW(DumpJson(nlohmann::json("\xff")), Error);
}

}  // namespace
}  // namespace lattice::io
