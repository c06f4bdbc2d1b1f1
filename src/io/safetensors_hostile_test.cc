// Files made to break a reader: each must be refused with a message that says why, without a crash and
// without memory beyond the file's own size.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "io/safetensors.h"
#include "io/testing.h"

namespace lattice::io {
namespace {

std::string WithLength(uint64_t length, const std::string& rest) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + rest;
}

std::string FileOf(const std::string& header, size_t data_bytes) {
  return WithLength(header.size(), header + std::string(data_bytes, '\0'));
}

// One tensor "a" with the given fields, in a file with `data_bytes` bytes of data.
std::string OneTensor(const std::string& fields, size_t data_bytes) {
  return FileOf("{\"a\":{" + fields + "}}", data_bytes);
}

struct Case {
  std::string name;
  std::string file;
  std::string expected;
};

std::vector<Case> Lengths() {
  return {
      {"empty file", "", "at least 8"},
      {"seven bytes", std::string(7, 'x'), "at least 8"},
      {"no header behind its length", WithLength(100, ""), "truncated"},
      {"header cut short", WithLength(50, "{\"a\":"), "truncated"},
      {"length of all ones", WithLength(~uint64_t{0}, "{}"), "at most 100000000"},
      {"length that wraps with 8", WithLength(~uint64_t{0} - 7, "{}"), "at most"},
      {"length over the limit", WithLength(100'000'001, "{}"), "at most"},
      {"header of no bytes", WithLength(0, ""), "start with"},
      {"a text file", "This is not a safetensors file at all.", "at most"},
  };
}

std::vector<Case> Json() {
  std::string deep = "{\"a\":", metadata_deep = "{\"__metadata__\":{\"k\":";
  deep.append(1'000'000, '[');
  metadata_deep.append(1'000'000, '{');
  return {
      {"list at the top", FileOf("[]", 0), "start with"},
      {"space before the brace", FileOf(" {}", 0), "start with"},
      {"byte order mark", FileOf("\xef\xbb\xbf{}", 0), "start with"},
      {"unfinished object", FileOf("{\"a\":", 0), "not valid JSON"},
      {"text after the object", FileOf("{}x", 0), "not valid JSON"},
      {"invalid UTF-8 in a name", FileOf("{\"\xff\":{}}", 0), "not valid JSON"},
      {"NUL padding", FileOf(std::string("{}\0\0", 4), 0), "not valid JSON"},
      {"a million nested lists", FileOf(deep, 0), "must be an object"},
      {"a million nested objects", FileOf(metadata_deep, 0), "must be a string"},
      {"nesting inside shape", OneTensor(R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])", 4),
       "a list in shape"},
      {"object inside shape", OneTensor(R"("dtype":"F32","shape":[{}],"data_offsets":[0,4])", 4),
       "an object in shape"},
      {"tensor that is a number", FileOf("{\"a\":3}", 0), "must be an object"},
      {"tensor that is null", FileOf("{\"a\":null}", 0), "must be an object"},
      {"metadata with a number", FileOf(R"({"__metadata__":{"k":1}})", 0), "must be a string"},
      {"metadata that is text", FileOf(R"({"__metadata__":"k"})", 0), "must be an object"},
      {"metadata key twice", FileOf(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "occurs twice"},
      {"metadata twice", FileOf(R"({"__metadata__":{},"__metadata__":{}})", 0), "occurs twice"},
  };
}

std::vector<Case> Fields() {
  std::string long_shape = R"("dtype":"F32","data_offsets":[0,4],"shape":[1)";
  for (int i = 0; i < 1000; ++i) long_shape += ",1";
  return {
      {"no dtype", OneTensor(R"("shape":[1],"data_offsets":[0,4])", 4), "lacks dtype"},
      {"no shape", OneTensor(R"("dtype":"F32","data_offsets":[0,4])", 4), "lacks shape"},
      {"no offsets", OneTensor(R"("dtype":"F32","shape":[1])", 4), "lacks data_offsets"},
      {"dtype twice", OneTensor(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])", 4),
       "twice"},
      {"unknown field", OneTensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1)", 4),
       "unknown field"},
      {"unknown dtype", OneTensor(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])", 4), "unknown dtype"},
      {"dtype in small letters", OneTensor(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])", 4),
       "unknown dtype"},
      {"dtype that is a number", OneTensor(R"("dtype":1,"shape":[1],"data_offsets":[0,4])", 4),
       "a number in dtype"},
      {"dtype that is a list", OneTensor(R"("dtype":[],"shape":[1],"data_offsets":[0,4])", 4),
       "a list in dtype"},
      {"shape that is a number", OneTensor(R"("dtype":"F32","shape":1,"data_offsets":[0,4])", 4),
       "a number in shape"},
      {"negative extent", OneTensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", 4),
       "negative number"},
      {"fractional extent", OneTensor(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", 4),
       "no 64-bit integer"},
      {"extent as text", OneTensor(R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])", 4),
       "a string in shape"},
      {"extent of 2^63", OneTensor(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4])", 4),
       "2^63"},
      {"extent of 2^70",
       OneTensor(R"("dtype":"F32","shape":[1180591620717411303424],"data_offsets":[0,4])", 4), "64-bit"},
      {"a thousand dimensions", OneTensor(long_shape + "]", 4), "more than 32"},
      {"one offset", OneTensor(R"("dtype":"F32","shape":[1],"data_offsets":[0])", 4), "expected 2"},
      {"three offsets", OneTensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])", 4), "expected 2"},
      {"negative offset", OneTensor(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])", 4),
       "negative number"},
  };
}

std::vector<Case> Layouts() {
  const auto two = [](const std::string& offsets_a, const std::string& offsets_b, size_t data_bytes) {
    return FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + offsets_a +
                      R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + offsets_b + "}}",
                  data_bytes);
  };
  return {
      {"data cut short", OneTensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", 7), "truncated"},
      {"offsets far beyond",
       OneTensor(R"("dtype":"F32","shape":[2],"data_offsets":[9000000000000000000,9000000000000000008])", 8),
       "truncated"},
      {"end before begin", OneTensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])", 8),
       "data_offsets [8, 0]"},
      {"too few bytes for the shape", OneTensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4),
       "needs 8 bytes"},
      {"too many bytes for the shape", OneTensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,12])", 12),
       "needs 8 bytes"},
      {"bytes for another dtype", OneTensor(R"("dtype":"BF16","shape":[2],"data_offsets":[0,8])", 8),
       "needs 4 bytes"},
      {"shape that overflows",
       OneTensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0), "64 bits"},
      {"bytes that overflow",
       OneTensor(R"("dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0])", 0), "64 bits"},
      {"overflow hidden by a zero",
       OneTensor(R"("dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0])", 0), "64 bits"},
      {"same name twice",
       FileOf(
           R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
           0),
       "occurs twice"},
      {"partial overlap", two("[0,8]", "[4,12]", 12), "overlaps"},
      {"same bytes twice", two("[0,8]", "[0,8]", 8), "overlaps"},
      {"gap in the middle", two("[0,8]", "[12,20]", 20), "4 bytes before tensor \"b\""},
      {"gap at the start", two("[4,12]", "[12,20]", 20), "4 bytes before tensor \"a\""},
      {"bytes at the end", two("[0,8]", "[8,16]", 17), "1 bytes at the end"},
      {"data without tensors", FileOf("{}", 5), "5 bytes at the end"},
  };
}

TEST(SafetensorsHostile, EveryCaseIsRefusedWithItsReason) {
  const TestDir dir;
  std::vector<Case> all;
  for (const auto& group : {Lengths(), Json(), Fields(), Layouts()})
    all.insert(all.end(), group.begin(), group.end());
  ASSERT_GE(all.size(), 60u);
  for (const Case& test : all) {
    SCOPED_TRACE(test.name);
    const std::string message = ErrorOf([&] { Safetensors file(dir.Put("x.safetensors", test.file)); });
    EXPECT_TRUE(Says(message, {test.expected}));
    EXPECT_TRUE(Says(message, {"x.safetensors"}));
    EXPECT_LT(message.size(), 1000u);
  }
}

std::string ValidFile(const TestDir& dir) {
  const std::vector<float> a = {1, 2, 3, 4};
  const std::vector<int8_t> b = {1, 2, 3};
  WriteSafetensors(dir / "valid", std::vector{ViewOf<float>("a", {2, 2}, a), ViewOf<int8_t>("b", {3}, b)},
                   {{"format", "pt"}});
  return ReadFile(dir / "valid");
}

TEST(SafetensorsHostile, EveryTruncationIsRefused) {
  const TestDir dir;
  const std::string valid = ValidFile(dir);
  for (size_t size = 0; size < valid.size(); ++size) {
    EXPECT_THROW(Safetensors(dir.Put("x", valid.substr(0, size))), Error) << size;
  }
}

// A flipped bit may leave a valid file (a digit of the data, a letter of a name) but never a view outside of
// it.
TEST(SafetensorsHostile, FlippedBitsNeverLeadOutsideTheFile) {
  const TestDir dir;
  const std::string valid = ValidFile(dir);
  const Random random(1);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = valid;
    damaged[random.Below(damaged.size(), 2 * i)] ^= static_cast<char>(1 << random.Below(8, 2 * i + 1));
    try {
      const Safetensors file(dir.Put("x", damaged));
      size_t total = 0;
      for (const auto& [name, tensor] : file.tensors()) {
        for (const std::byte byte : tensor.bytes) total += static_cast<size_t>(byte);
      }
      EXPECT_GT(total, 0u);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace lattice::io
