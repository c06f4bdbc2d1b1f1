// The types of tensors in GGUF files, and how their blocks become float32.
#ifndef LATTICE_IO_GGUF_TYPES_H_
#define LATTICE_IO_GGUF_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lattice::io {

// The numbers are those of the format.
enum class GgufType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

struct GgufTypeInfo {
  GgufType type;
  std::string_view name;
  int64_t block;  // elements that are stored together
  int64_t bytes;  // of a block
};

// The type with this number; null for those that are not read here.
const GgufTypeInfo* FindGgufType(uint32_t number);
const GgufTypeInfo& InfoOf(GgufType type);
// The format's name of a type, read here or not: "Q2_K", or "type 77".
std::string GgufTypeName(uint32_t number);

// Writes the values of whole blocks: out.size() elements, for which `bytes` has just the room.
void Dequantize(GgufType type, std::span<const std::byte> bytes, std::span<float> out);

}  // namespace lattice::io

#endif  // LATTICE_IO_GGUF_TYPES_H_
