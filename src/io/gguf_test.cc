#include "io/gguf.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/gguf_testing.h"
#include "io/testing.h"

namespace lattice::io {
namespace {

Gguf Parsed(const std::string& file) { return Gguf(std::as_bytes(std::span(file)), "test.gguf"); }

TEST(Gguf, ReadsValuesAndTensors) {
  GgufBuilder builder;
  builder.Text("general.architecture", "llama")
      .Uint32("n", 7)
      .Float32("f", 0.5f)
      .Bool("yes", true)
      .Texts("words", {"a", "", "\xC4\xA0"})
      .Int32s("types", {1, -3})
      .Tensor("w", {2, 3}, 0, std::string(24, '\0'))
      .Tensor("v", {32}, 8, std::string(34, '\1'));
  const std::string bytes = builder.File();
  const Gguf file = Parsed(bytes);
  EXPECT_EQ(file.Require<std::string>("general.architecture"), "llama");
  EXPECT_EQ(file.Require<int64_t>("n"), 7);
  EXPECT_EQ(file.Require<double>("f"), 0.5);
  EXPECT_TRUE(file.Require<bool>("yes"));
  EXPECT_EQ(file.Require<std::vector<std::string>>("words"), (std::vector<std::string>{"a", "", "\xC4\xA0"}));
  EXPECT_EQ(file.Require<std::vector<int64_t>>("types"), (std::vector<int64_t>{1, -3}));
  EXPECT_EQ(file.Find<int64_t>("none"), nullptr);
  EXPECT_EQ(file.Get("w").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.Get("v").elements(), 32);
  EXPECT_TRUE(Says(ErrorOf([&] { file.Require<int64_t>("f"); }), {"\"f\"", "another type"}));
  EXPECT_TRUE(Says(ErrorOf([&] { file.Require<int64_t>("m"); }), {"\"m\"", "missing"}));
  EXPECT_TRUE(Says(ErrorOf([&] { (void)file.Get("x"); }), {"no tensor \"x\""}));
}

TEST(Gguf, WidensHalves) {
  const uint16_t halves[] = {0x3C00, 0xC000, 0x0001, 0x7BFF};  // 1, -2, 2^-24, 65504
  std::vector<float> out(4);
  Dequantize(GgufType::kF16, std::as_bytes(std::span(halves)), out);
  EXPECT_EQ(out, (std::vector<float>{1, -2, std::ldexp(1.0f, -24), 65504}));
  const uint16_t brain[] = {0x3F80, 0xC040};
  out.resize(2);
  Dequantize(GgufType::kBF16, std::as_bytes(std::span(brain)), out);
  EXPECT_EQ(out, (std::vector<float>{1, -3}));
}

// One block by hand: scale 0.5 (0x3800), minimum 2 (0x4000), integers 0 to 15 in the low halves, 15 to 0 in the high.
TEST(Gguf, BlocksByHand) {
  std::string block("\x00\x38\x00\x40", 4);
  for (int i = 0; i < 16; ++i) block += static_cast<char>(i | (15 - i) << 4);
  std::vector<float> out(32);
  Dequantize(GgufType::kQ4_1, std::as_bytes(std::span(block)), out);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)], 0.5f * static_cast<float>(i) + 2);
    EXPECT_EQ(out[static_cast<size_t>(i + 16)], 0.5f * static_cast<float>(15 - i) + 2);
  }
  block.erase(2, 2);
  Dequantize(GgufType::kQ4_0, std::as_bytes(std::span(block)), out);
  EXPECT_EQ(out[3], 0.5f * (3 - 8));
  EXPECT_EQ(out[16], 0.5f * (15 - 8));
  EXPECT_TRUE(
      Says(ErrorOf([&] { Dequantize(GgufType::kQ8_0, std::as_bytes(std::span(block)), out); }), {"Q8_0"}));
}

}  // namespace
}  // namespace lattice::io
