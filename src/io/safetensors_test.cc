#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "io/testing.h"
#include "io/write_calls.h"

namespace lattice::io {
namespace {

template <typename List>
std::string ToText(const List& values) {
  std::vector<int64_t> numbers(values.begin(), values.end());
  return ShapeText(numbers);
}

TEST(Safetensors, WritesWhatItReads) {
  const TestDir dir;
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<double> b = {7};
  const std::vector<int8_t> c = {1, -2, 3};
  const std::vector<std::byte> half(6);
  const std::vector<TensorView> tensors = {ViewOf<int8_t>("c", {3}, c),
                                           ViewOf<float>("a", {2, 3}, a),
                                           ViewOf<double>("scalar", {}, b),
                                           {"half", Dtype::kBF16, {3, 1}, half},
                                           {"none", Dtype::kF32, {0, 4}, {}}};
  WriteSafetensors(dir / "x.safetensors", tensors, {{"format", "pt"}, {"note", "caf\xc3\xa9 \"q\""}});

  const Safetensors file(dir / "x.safetensors");
  EXPECT_EQ(file.metadata().size(), 2u);
  EXPECT_EQ(file.metadata().at("note"), "caf\xc3\xa9 \"q\"");
  ASSERT_EQ(file.tensors().size(), 5u);
  EXPECT_EQ(ToText(file.Get("a").As<float>()), "[1, 2, 3, 4, 5, 6]");
  EXPECT_EQ(ToText(file.Get("a").shape), "[2, 3]");
  EXPECT_EQ(file.Get("a").elements(), 6);
  EXPECT_EQ(ToText(file.Get("scalar").As<double>()), "[7]");
  EXPECT_TRUE(file.Get("scalar").shape.empty());
  EXPECT_EQ(ToText(file.Get("c").As<int8_t>()), "[1, -2, 3]");
  EXPECT_EQ(file.Get("half").dtype, Dtype::kBF16);
  EXPECT_TRUE(file.Get("none").bytes.empty());
  EXPECT_TRUE(file.Has("half"));
  EXPECT_FALSE(file.Has("other"));
}

TEST(Safetensors, LaysOutAlignedAndDeterministic) {
  const TestDir dir;
  const std::vector<float> wide = {1, 2};
  const std::vector<int8_t> narrow = {1, 2, 3};
  const std::vector<TensorView> order1 = {ViewOf<int8_t>("a", {3}, narrow), ViewOf<float>("z", {2}, wide)};
  const std::vector<TensorView> order2 = {order1[1], order1[0]};
  WriteSafetensors(dir / "1", order1);
  WriteSafetensors(dir / "2", order2);
  const std::string bytes = ReadFile(dir / "1");
  EXPECT_EQ(bytes, ReadFile(dir / "2"));
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes.substr(8, length), R"({"z":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                     R"("a":{"dtype":"I8","shape":[3],"data_offsets":[8,11]}}     )");
}

TEST(Safetensors, EmptyFileOfNoTensors) {
  const TestDir dir;
  WriteSafetensors(dir / "x", {});
  EXPECT_TRUE(Safetensors(dir / "x").tensors().empty());
}

TEST(Safetensors, ViewsOutliveAMove) {
  const TestDir dir;
  const std::vector<float> a = {1, 2};
  WriteSafetensors(dir / "x", std::vector{ViewOf<float>("a", {2}, a)});
  Safetensors first(dir / "x");
  const TensorView view = first.Get("a");
  const Safetensors second(std::move(first));
  EXPECT_EQ(ToText(view.As<float>()), "[1, 2]");
  EXPECT_EQ(second.Get("a").bytes.data(), view.bytes.data());
}

TEST(Safetensors, GetNamesTheNearest) {
  const TestDir dir;
  const std::vector<float> a = {1};
  WriteSafetensors(dir / "x",
                   std::vector{ViewOf<float>("embed.weight", {1}, a), ViewOf<float>("norm", {1}, a)});
  const Safetensors file(dir / "x");
  EXPECT_TRUE(Says(ErrorOf([&] { file.Get("embed.wieght"); }),
                   {"no tensor \"embed.wieght\"", "did you mean \"embed.weight\""}));
  EXPECT_TRUE(Says(ErrorOf([&] { file.Get("norm").As<double>(); }), {"F32", "F64"}));
}

TEST(Safetensors, UnalignedForeignFileIsReadableAsBytesOnly) {
  const TestDir dir;
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  ASSERT_NE(header.size() % 4, 0u);
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  const Safetensors file(dir.Put("x", bytes + header + std::string(4, '\0')));
  EXPECT_EQ(file.Get("a").bytes.size(), 4u);
  EXPECT_TRUE(Says(ErrorOf([&] { file.Get("a").As<float>(); }), {"not aligned"}));
}

TEST(Safetensors, WriterRefusesNonsenseAndWritesNothing) {
  const TestDir dir;
  const std::vector<float> a = {1, 2};
  const auto message = [&](std::vector<TensorView> tensors, Metadata metadata = {}) {
    return ErrorOf([&] { WriteSafetensors(dir / "x", tensors, metadata); });
  };
  const TensorView good = ViewOf<float>("a", {2}, a);
  EXPECT_TRUE(Says(message({ViewOf<float>("a", {3}, a)}), {"was given 8 bytes"}));
  EXPECT_TRUE(Says(message({ViewOf<float>("a", {-2}, a)}), {"[-2]"}));
  EXPECT_TRUE(Says(message({ViewOf<float>("a", {int64_t{1} << 62, 4}, a)}), {"was given 8 bytes"}));
  EXPECT_TRUE(Says(message({good, good}), {"two tensors are named \"a\""}));
  EXPECT_TRUE(Says(message({ViewOf<float>("__metadata__", {2}, a)}), {"cannot be named"}));
  EXPECT_TRUE(Says(message({ViewOf<float>("\xff", {2}, a)}), {"UTF-8"}));
  EXPECT_TRUE(Says(message({good}, {{"k", "\xff"}}), {"UTF-8"}));
  EXPECT_EQ(dir.CountEntries(), 0);
}

}  // namespace
}  // namespace lattice::io
