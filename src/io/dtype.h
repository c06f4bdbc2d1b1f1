// Element types of tensors in files, named as safetensors names them.
#ifndef LATTICE_IO_DTYPE_H_
#define LATTICE_IO_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace lattice::io {

enum class Dtype {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64
};

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;
  int64_t bytes;
};

inline constexpr DtypeInfo kDtypes[] = {
    {Dtype::kBool, "BOOL", 1},      {Dtype::kU8, "U8", 1},          {Dtype::kI8, "I8", 1},
    {Dtype::kF8E5M2, "F8_E5M2", 1}, {Dtype::kF8E4M3, "F8_E4M3", 1}, {Dtype::kI16, "I16", 2},
    {Dtype::kU16, "U16", 2},        {Dtype::kF16, "F16", 2},        {Dtype::kBF16, "BF16", 2},
    {Dtype::kI32, "I32", 4},        {Dtype::kU32, "U32", 4},        {Dtype::kF32, "F32", 4},
    {Dtype::kI64, "I64", 8},        {Dtype::kU64, "U64", 8},        {Dtype::kF64, "F64", 8},
};

// The table is in the order of the enumeration.
constexpr std::string_view Name(Dtype dtype) { return kDtypes[static_cast<int>(dtype)].name; }
constexpr int64_t ByteSize(Dtype dtype) { return kDtypes[static_cast<int>(dtype)].bytes; }

constexpr std::optional<Dtype> FindDtype(std::string_view name) {
  for (const DtypeInfo& info : kDtypes) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

// The Dtype whose elements are C++ values of type T; bf16 and f16 have none here.
template <typename T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr Dtype kValue = Dtype::kF32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype kValue = Dtype::kF64;
};
template <>
struct DtypeOf<int8_t> {
  static constexpr Dtype kValue = Dtype::kI8;
};
template <>
struct DtypeOf<uint8_t> {
  static constexpr Dtype kValue = Dtype::kU8;
};
template <>
struct DtypeOf<int32_t> {
  static constexpr Dtype kValue = Dtype::kI32;
};
template <>
struct DtypeOf<uint32_t> {
  static constexpr Dtype kValue = Dtype::kU32;
};
template <>
struct DtypeOf<int64_t> {
  static constexpr Dtype kValue = Dtype::kI64;
};

}  // namespace lattice::io

#endif  // LATTICE_IO_DTYPE_H_
