// GGUF files made to break a reader: each must be refused with a message that says why, without a crash and without
// memory beyond the file's own size.
#include <gtest/gtest.h>

#include "io/gguf.h"
#include "io/gguf_testing.h"
#include "io/testing.h"

namespace lattice::io {
namespace {

constexpr uint64_t kHuge = ~uint64_t{0};

struct GgufCase {
  std::string name, file, expected;
};

std::string Number(uint64_t value) {
  std::string bytes;
  GgufBuilder::Add(bytes, value);
  return bytes;
}

// The start of a file that claims so many tensors and keys, and has none.
std::string Claiming(uint64_t tensors, uint64_t keys) {
  return std::string("GGUF\3\0\0\0", 8) + Number(tensors) + Number(keys);
}

// A list that claims `count` values of a type and has none.
std::string ListClaiming(uint32_t type, uint64_t count) {
  std::string bytes;
  GgufBuilder::Add(bytes, type);
  return GgufBuilder().Raw("k", 9, bytes + Number(count)).File();
}

std::string OneTensor(std::vector<uint64_t> shape, uint32_t type, size_t bytes, int64_t offset = -1) {
  return GgufBuilder().Tensor("w", std::move(shape), type, std::string(bytes, '\0'), offset).File();
}

std::vector<GgufCase> Cases() {
  const std::string four(4, '\0');
  return {
      {"empty file", "", "truncated"},
      {"a text file", "This is no model.", "does not begin with"},
      {"nothing behind the magic", "GGUF", "truncated"},
      {"version 1", GgufBuilder().File(1), "version 1"},
      {"version 4", GgufBuilder().File(4), "version 4"},
      {"big-endian", GgufBuilder().File(0x03000000), "big-endian"},
      {"counts of all ones", Claiming(kHuge, kHuge), "at most"},
      {"more tensors than there are", Claiming(100, 0), "truncated"},
      {"more keys than there are", Claiming(0, 100), "truncated"},
      {"a key as long as memory", Claiming(0, 1) + Number(kHuge), "at most"},
      {"a key longer than the file", Claiming(0, 1) + Number(1000), "truncated"},
      {"a text as long as memory", GgufBuilder().Raw("k", 8, Number(kHuge)).File(), "at most"},
      {"a text longer than the file", GgufBuilder().Raw("k", 8, Number(99)).File(), "at most"},
      {"an unknown type of value", GgufBuilder().Raw("k", 13, "").File(), "unknown type 13"},
      {"a list of lists", ListClaiming(9, 1), "list of lists"},
      {"a list of unknown type", ListClaiming(77, 1), "unknown type 77"},
      {"a list as long as memory", ListClaiming(0, kHuge), "more than the file has bytes for"},
      {"a list of texts that wraps", ListClaiming(8, uint64_t{1} << 61), "more than the file has bytes for"},
      {"a key twice", GgufBuilder().Uint32("k", 1).Uint32("k", 2).File(), "occurs twice"},
      {"a number beyond 2^63", GgufBuilder().Raw("k", 10, Number(kHuge)).File(), "beyond 2^63"},
      {"alignment 0", GgufBuilder().Uint32("general.alignment", 0).File(), "power of two"},
      {"alignment 48", GgufBuilder().Uint32("general.alignment", 48).File(), "power of two"},
      {"alignment that is text", GgufBuilder().Text("general.alignment", "32").File(), "another type"},
      {"no dimension", OneTensor({}, 0, 4), "0 dimensions"},
      {"five dimensions", OneTensor({1, 1, 1, 1, 1}, 0, 4), "5 dimensions"},
      {"elements that overflow", OneTensor({uint64_t{1} << 62, 4}, 0, 4), "64 bits"},
      {"an extent beyond 2^63", OneTensor({kHuge}, 0, 4), "beyond 2^63"},
      {"bytes that overflow", OneTensor({uint64_t{1} << 62}, 0, 4), "64 bits"},
      {"more bytes than the file", OneTensor({1000}, 0, 4), "truncated"},
      {"half a block", OneTensor({33}, 8, 68), "multiples of 32"},
      {"a quantisation that is known but not read", OneTensor({256}, 10, 84), "quantised as Q2_K"},
      {"a quantisation nobody knows", OneTensor({256}, 1234, 84), "type 1234"},
      {"an offset that wraps", OneTensor({1}, 0, 4, static_cast<int64_t>(INT64_MAX - 31)), "truncated"},
      {"an odd offset", OneTensor({1}, 0, 4, 1), "not aligned"},
      {"tensors that overlap",
       GgufBuilder().Tensor("a", {16}, 0, std::string(64, 'a')).Tensor("b", {1}, 0, four, 32).File(),
       "overlaps"},
      {"a tensor twice", GgufBuilder().Tensor("a", {1}, 0, four).Tensor("a", {1}, 0, four).File(),
       "occurs twice"},
  };
}

TEST(GgufHostile, EveryFileIsRefusedAndTheReasonSaid) {
  for (const GgufCase& test : Cases()) {
    const PeakMemory memory;
    const std::string error =
        ErrorOf([&] { const Gguf file(std::as_bytes(std::span(test.file)), "bad.gguf"); });
    EXPECT_TRUE(Says(error, {"bad.gguf", test.expected})) << test.name;
    EXPECT_LT(memory.Grown(), 8 << 20) << test.name;
  }
}

TEST(GgufHostile, DamageIsRefusedOrHarmless) {
  GgufBuilder builder;
  builder.Text("general.architecture", "llama")
      .Texts("tokenizer.ggml.tokens", {"a", "b", "c"})
      .Uint32("n", 3);
  for (int i = 0; i < 4; ++i) builder.Tensor("w" + std::to_string(i), {2, 32}, 8, std::string(68, '\7'));
  const std::string whole = builder.File();
  for (uint64_t i = 0; i < 3000; ++i) {
    const std::string file = Damaged(whole, i);
    (void)ErrorOf([&] {
      const Gguf read(std::as_bytes(std::span(file)), "damaged.gguf");
      for (const auto& [name, tensor] : read.tensors()) {
        std::vector<float> out(static_cast<size_t>(tensor.elements()));
        Dequantize(tensor.type, tensor.bytes, out);
      }
    });
  }
}

}  // namespace
}  // namespace lattice::io
