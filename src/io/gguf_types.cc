// The blocks of the quantised types, transcribed from the format. d and m are a block's scale and minimum, q its
// integers; types with _K have 8 or 16 scales of their own inside a block of 256.
#include "io/gguf_types.h"

#include <cstring>

#include "base/error.h"
#include "io/half.h"

namespace lattice::io {
namespace {

constexpr GgufTypeInfo kTypes[] = {
    {GgufType::kF32, "F32", 1, 4},       {GgufType::kF16, "F16", 1, 2},
    {GgufType::kBF16, "BF16", 1, 2},     {GgufType::kQ4_0, "Q4_0", 32, 18},
    {GgufType::kQ4_1, "Q4_1", 32, 20},   {GgufType::kQ5_0, "Q5_0", 32, 22},
    {GgufType::kQ5_1, "Q5_1", 32, 24},   {GgufType::kQ8_0, "Q8_0", 32, 34},
    {GgufType::kQ4_K, "Q4_K", 256, 144}, {GgufType::kQ5_K, "Q5_K", 256, 176},
    {GgufType::kQ6_K, "Q6_K", 256, 210},
};

struct OtherType {
  uint32_t number;
  std::string_view name;
};
constexpr OtherType kOthers[] = {
    {9, "Q8_1"},     {10, "Q2_K"},  {11, "Q3_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
    {24, "I8"},      {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},
    {34, "TQ1_0"},   {35, "TQ2_0"}, {39, "MXFP4"},
};

constexpr int kSmall = 32;

uint16_t Half(const uint8_t* at) {
  uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  return half;
}
float F16(const uint8_t* at) { return WidenF16(Half(at)); }

// 32 integers of 4 bits: the low halves of 16 bytes, then the high ones. Where there is a fifth bit, it stands in
// `high`, bit i for integer i.
template <typename Value>
void Nibbles(const uint8_t* q, uint32_t high, float* out, const Value& value) {
  for (int i = 0; i < kSmall / 2; ++i) {
    out[i] = value((q[i] & 15) | static_cast<int>((high >> i) & 1) << 4);
    out[i + kSmall / 2] = value((q[i] >> 4) | static_cast<int>((high >> (i + kSmall / 2)) & 1) << 4);
  }
}

uint32_t Bits(const uint8_t* at) {
  uint32_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

// Signed 4 or 5 bits: d (q - zero).
void Symmetric(const uint8_t* block, const uint8_t* q, uint32_t high, int zero, float* out) {
  const float d = F16(block);
  Nibbles(q, high, out, [&](int v) { return d * static_cast<float>(v - zero); });
}

// 4 or 5 bits above a minimum: d q + m.
void WithMinimum(const uint8_t* block, const uint8_t* q, uint32_t high, float* out) {
  const float d = F16(block), m = F16(block + 2);
  Nibbles(q, high, out, [&](int v) { return d * static_cast<float>(v) + m; });
}

void Q8_0(const uint8_t* block, float* out) {
  const float d = F16(block);
  for (int i = 0; i < kSmall; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

struct ScaleAndMinimum {
  int scale, minimum;
};

// Number j of the eight pairs of 6-bit scale and minimum that are packed into 12 bytes.
ScaleAndMinimum PairAt(const uint8_t* packed, int j) {
  if (j < 4) return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4, (packed[j + 4] >> 4) | (packed[j] >> 6) << 4};
}

// Eight groups of 32: d scale q - dmin minimum. Two groups share 32 bytes, the low halves first; a fifth bit of
// group j is bit j of `high`, null for Q4_K.
void Grouped(const uint8_t* block, const uint8_t* high, const uint8_t* q, float* out) {
  const float d = F16(block), dmin = F16(block + 2);
  for (int j = 0; j < 8; ++j) {
    const ScaleAndMinimum pair = PairAt(block + 4, j);
    const float scale = d * static_cast<float>(pair.scale), minimum = dmin * static_cast<float>(pair.minimum);
    const uint8_t* bytes = q + j / 2 * kSmall;
    for (int i = 0; i < kSmall; ++i) {
      int value = j % 2 == 0 ? bytes[i] & 15 : bytes[i] >> 4;
      if (high != nullptr) value |= ((high[i] >> j) & 1) << 4;
      out[j * kSmall + i] = scale * static_cast<float>(value) - minimum;
    }
  }
}

// Two halves of 128 elements in four groups of 32 each; a group's integers have 4 bits in `low` and 2 in `high`,
// and every 16 of them a scale.
void Q6_K(const uint8_t* block, float* out) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  const float d = F16(block + 208);
  for (int half = 0; half < 2; ++half, low += 64, high += 32, scales += 8, out += 128) {
    for (int group = 0; group < 4; ++group) {
      for (int i = 0; i < kSmall; ++i) {
        const uint8_t byte = low[group % 2 * kSmall + i];
        const int value = (group < 2 ? byte & 15 : byte >> 4) | ((high[i] >> (2 * group)) & 3) << 4;
        const auto scale = static_cast<int8_t>(scales[2 * group + i / 16]);
        out[group * kSmall + i] = d * static_cast<float>(scale) * static_cast<float>(value - 32);
      }
    }
  }
}

void OneBlock(GgufType type, const uint8_t* block, float* out) {
  switch (type) {
    case GgufType::kF32:
      std::memcpy(out, block, sizeof(float));
      return;
    case GgufType::kF16:
      *out = F16(block);
      return;
    case GgufType::kBF16:
      *out = WidenBf16(Half(block));
      return;
    case GgufType::kQ4_0:
      return Symmetric(block, block + 2, 0, 8, out);
    case GgufType::kQ5_0:
      return Symmetric(block, block + 6, Bits(block + 2), 16, out);
    case GgufType::kQ4_1:
      return WithMinimum(block, block + 4, 0, out);
    case GgufType::kQ5_1:
      return WithMinimum(block, block + 8, Bits(block + 4), out);
    case GgufType::kQ8_0:
      return Q8_0(block, out);
    case GgufType::kQ4_K:
      return Grouped(block, nullptr, block + 16, out);
    case GgufType::kQ5_K:
      return Grouped(block, block + 16, block + 48, out);
    case GgufType::kQ6_K:
      return Q6_K(block, out);
  }
}

}  // namespace

const GgufTypeInfo* FindGgufType(uint32_t number) {
  for (const GgufTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.type) == number) return &info;
  }
  return nullptr;
}

const GgufTypeInfo& InfoOf(GgufType type) { return *FindGgufType(static_cast<uint32_t>(type)); }

std::string GgufTypeName(uint32_t number) {
  if (const GgufTypeInfo* info = FindGgufType(number)) return std::string(info->name);
  for (const OtherType& other : kOthers) {
    if (other.number == number) return std::string(other.name);
  }
  return StrCat("type ", number);
}

void Dequantize(GgufType type, std::span<const std::byte> bytes, std::span<float> out) {
  const GgufTypeInfo& info = InfoOf(type);
  const auto block = static_cast<size_t>(info.block), size = static_cast<size_t>(info.bytes);
  Check(out.size() % block == 0 && bytes.size() == out.size() / block * size, "[gguf] ", out.size(),
        " elements of ", info.name, " in ", bytes.size(), " bytes; expected whole blocks of ", block, " in ",
        size);
  if (type == GgufType::kF32) {
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  for (size_t i = 0; i < out.size(); i += block, at += size) OneBlock(type, at, out.data() + i);
}

}  // namespace lattice::io
