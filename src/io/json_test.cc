#include "io/json.h"

#include <gtest/gtest.h>
#include <time.h>

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

TEST(Json, LimitsAreArguments) {
  const auto message = [](std::string_view text, const JsonLimits& limits) {
    return ErrorOf([&] { ParseJson(text, "t.json", limits); });
  };
  EXPECT_TRUE(Says(message("[[[]]]", {.depth = 2}), {"t.json is nested deeper than 2 levels"}));
  EXPECT_EQ(message("[[[]]]", {.depth = 3}), "no error");
  EXPECT_TRUE(Says(message("[1,{\"a\":2}]", {.values = 3}), {"more than 3 values"}));
  EXPECT_EQ(message("[1,{\"a\":2}]", {.values = 4}), "no error");
  EXPECT_TRUE(Says(message("[1, 2]", {.bytes = 5}), {"6 bytes; at most 5"}));
}

// Seconds of this thread, which other processes do not add to.
double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// What it takes to parse that many bytes of objects in a list, and as many of objects under keys.
double SecondsForObjects(size_t bytes) {
  std::string list = "{\"x\":[{}", keys = "{\"k\":{}";
  while (list.size() < bytes) list += ",{}";
  for (int i = 0; keys.size() < bytes; ++i) keys += ",\"" + std::to_string(i) + "\":{}";
  const double start = CpuSeconds();
  EXPECT_EQ(ParseJson(list + "]}", "t.json")["x"].size(), (list.size() - 5) / 3);
  EXPECT_GT(ParseJson(keys + "}", "t.json").size(), bytes / 14);
  return CpuSeconds() - start;
}

// Half a MiB takes some 20 ms in linear time, and 19 s when every object looks through its siblings: 16 times as long as a
// quarter of it. A ratio, because emulators are slow.
TEST(Json, ManyObjectsTakeLinearTime) {
  const double quarter = SecondsForObjects(size_t{128} << 10);
  EXPECT_LT(SecondsForObjects(size_t{512} << 10), 8 * quarter + 0.1);
}

TEST(Json, BuildsTheValueTheLibraryBuilds) {
  const std::string text =
      R"([{"a":[1,-2,3.5,1e300,18446744073709551615,-0.0],"b":{"c":null,"d":[true,false,[],{}]},"":"\u00e9\ud83d\ude42"},"x",[[[7]]]])";
  EXPECT_EQ(ParseJson(text, "t.json"), nlohmann::json::parse(text));
  for (const std::string_view scalar : {"1", "\"s\"", "null", "[]", " {} "}) {
    EXPECT_EQ(ParseJson(scalar, "t.json"), nlohmann::json::parse(scalar));
  }
}

TEST(Json, AcceptsWhatTheLibraryAcceptsOfDamagedText) {
  const std::string whole =
      R"({"model":{"layers":12,"lr":-6.5e-3,"tie":true,"x":[null,"\u00e9\n",[{},[]]]},"name":"caf\\u00e9"})";
  int accepted = 0;
  for (uint64_t i = 0; i < 5000; ++i) {
    const std::string text = Damaged(whole, i);
    const bool valid = nlohmann::json::accept(text);
    accepted += valid ? 1 : 0;
    // No key of this text is one bit away from another.
    nlohmann::json value;
    EXPECT_EQ(ErrorOf([&] { value = ParseJson(text, "t.json"); }) == "no error", valid) << text;
    EXPECT_TRUE(!valid || value == nlohmann::json::parse(text)) << text;
  }
  EXPECT_GT(accepted, 500);
}

TEST(Json, MessagesQuoteLittleAndNameThePlace) {
  const std::string much(size_t{8} << 20, 'a');
  const auto message = [](const std::string& text) { return ErrorOf([&] { ParseJson(text, "t.json"); }); };
  for (const std::string& text : {"\"" + much, "[" + much, "{\"" + much + "\":1,\"" + much + "\":2}",
                                  "[1" + std::string(much.size(), '0') + "]"}) {
    const std::string said = message(text);
    EXPECT_TRUE(Says(said, {"t.json"}));
    EXPECT_LT(said.size(), 500u);
  }
  EXPECT_TRUE(Says(message("\"" + much), {"line 1, column 8388610", "missing closing quote"}));
  EXPECT_TRUE(Says(message("[1, 1e999]"), {"at byte 9"}));
}

TEST(Json, LinesOfALogMayBeCut) {
  EXPECT_EQ(ParseJsonLine(R"({"step":3})")["step"], 3);
  EXPECT_TRUE(ParseJsonLine(R"({"step":)").is_null());
  EXPECT_TRUE(ParseJsonLine("").is_null());
}

TEST(Json, OneStringOfAnObject) {
  const auto error = [](std::string_view text) { return ErrorOf([&] { JsonStringField(text, "text"); }); };
  EXPECT_EQ(JsonStringField(R"({"a":{"text":"no"},"text":"yes","b":["text"]})", "text"), "yes");
  EXPECT_EQ(JsonStringField(R"({"text":"first","text":"last"})", "text"), "last");
  EXPECT_TRUE(Says(error(R"({"b":{"text":"no"},"a":1})"), {"no key \"text\"", "b, a"}));
  EXPECT_TRUE(Says(error(R"({"text":["no"]})"), {"holds no text"}));
  EXPECT_TRUE(Says(error(R"({"text":"yes","text":{"text":"no"}})"), {"holds no text"}));
  EXPECT_TRUE(Says(error(R"(["text","no"])"), {"not a JSON object"}));
  EXPECT_TRUE(Says(error("{\"text\":"), {"parse error"}));
  EXPECT_TRUE(Says(error(std::string(size_t{16} << 20, '[')), {"nested deeper than 1024"}));
}

// Only the field is stored, besides the parser's copy of the value it reads: as a tree this line takes a
// gigabyte.
TEST(Json, TheRestOfAnObjectTakesNoMemory) {
  std::string line = "{\"a\":[{}";
  while (line.size() < size_t{32} << 20) line += ",{}";
  line += "],\"text\":\"yes\"}";
  const PeakMemory peak;
  EXPECT_EQ(JsonStringField(line, "text"), "yes");
  EXPECT_LT(peak.Grown(), int64_t{160} << 20);
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
