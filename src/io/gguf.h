// Reads GGUF files, the format of models in llama.cpp: metadata, then tensors, many of them quantised. Files are
// untrusted, so everything is checked before anything is used.
//
// The layout (little-endian): "GGUF", version, number of tensors and of metadata; the metadata (key, type, value);
// the tensors' names, extents, types and offsets; padding; the data.
#ifndef LATTICE_IO_GGUF_H_
#define LATTICE_IO_GGUF_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/file.h"
#include "io/gguf_types.h"

namespace lattice::io {

// All integers as int64_t, all floats as double; lists of flags and integers as integers.
using GgufValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>>;

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::kF32;
  std::vector<int64_t> shape;  // rows first, as everywhere else here; the file has the innermost extent first
  std::span<const std::byte> bytes;

  int64_t elements() const;
};

// The tensors of a file that is mapped read-only, or of bytes of the caller, which must outlive the object.
class Gguf {
 public:
  // Limits that files of models are far from.
  static constexpr uint64_t kMostTensors = 1 << 17, kMostKeys = 1 << 16, kLongestName = 1024;

  // Throws Error that names the file and what is wrong in it, or what it has that is not read here: a version, a
  // byte order, a kind of quantisation.
  explicit Gguf(const std::filesystem::path& path);
  Gguf(std::span<const std::byte> bytes, std::string source);

  const std::string& source() const { return source_; }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }
  const std::map<std::string, GgufTensor, std::less<>>& tensors() const { return tensors_; }
  bool Has(std::string_view name) const { return tensors_.contains(name); }
  // Throws Error with the nearest name when there is no such tensor.
  const GgufTensor& Get(std::string_view name) const;

  // The value of a key; null when there is none. Throws Error when it has another type.
  template <typename T>
  const T* Find(std::string_view key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) return nullptr;
    const T* value = std::get_if<T>(&found->second);
    if (value == nullptr) FailType(key);
    return value;
  }
  // The same for keys that must be there.
  template <typename T>
  const T& Require(std::string_view key) const {
    const T* value = Find<T>(key);
    if (value == nullptr) FailMissing(key);
    return *value;
  }

 private:
  void Parse(std::span<const std::byte> bytes);
  [[noreturn]] void FailType(std::string_view key) const;
  [[noreturn]] void FailMissing(std::string_view key) const;

  std::optional<MappedFile> file_;
  std::string source_;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace lattice::io

#endif  // LATTICE_IO_GGUF_H_
