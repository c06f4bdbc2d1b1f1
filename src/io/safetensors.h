// Reads and writes safetensors files: a JSON header, then the tensors' bytes one after the other. Files are
// untrusted, so everything is checked before anything is used; docs/checkpoint-format.md has the layout and
// the list of checks.
#ifndef LATTICE_IO_SAFETENSORS_H_
#define LATTICE_IO_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/dtype.h"
#include "io/file.h"

namespace lattice::io {

using Metadata = std::map<std::string, std::string>;

// A tensor that does not own its bytes: they belong to the Safetensors it came from, or to the caller who
// writes it.
struct TensorView {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;

  int64_t elements() const { return static_cast<int64_t>(bytes.size()) / ByteSize(dtype); }

  // The elements, without a copy. Throws when T is not the dtype, or when the file does not align them.
  template <typename T>
  std::span<const T> As() const;
};

// A view of `values` for WriteSafetensors.
template <typename T>
TensorView ViewOf(std::string name, std::vector<int64_t> shape, std::span<const T> values) {
  return {std::move(name), DtypeOf<T>::kValue, std::move(shape), std::as_bytes(values)};
}

// "[2, 3]", for messages.
std::string ShapeText(std::span<const int64_t> shape);

// The tensors of a file that is mapped read-only, or of bytes of the caller, which must outlive the object.
// Views stay valid while the object (or what it was moved into) lives.
class Safetensors {
 public:
  // The limit of the format's own library.
  static constexpr uint64_t kMaxHeaderBytes = 100'000'000;

  // Throws Error that names the file and what is wrong in it.
  explicit Safetensors(const std::filesystem::path& path);
  // The same from the content of a file; `source` is what errors call it. `bytes` must be aligned to the
  // elements of the tensors that are used.
  Safetensors(std::span<const std::byte> bytes, std::string source);

  // The path, or the name the bytes were given.
  const std::string& source() const { return source_; }
  const Metadata& metadata() const { return metadata_; }
  // All tensors, in the order of their names.
  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  bool Has(std::string_view name) const { return tensors_.contains(name); }
  // Throws Error with the nearest name when there is no such tensor.
  const TensorView& Get(std::string_view name) const;

 private:
  void Parse(std::span<const std::byte> bytes);

  std::optional<MappedFile> file_;
  std::string source_;
  Metadata metadata_;
  std::map<std::string, TensorView, std::less<>> tensors_;
};

// Writes the file atomically (see AtomicFile). Tensors are sorted by the size of their elements, largest
// first, then by name, and the data starts at a multiple of 8, so every tensor is aligned to its element. The
// same input gives the same bytes. Throws when a view's bytes do not fit its shape, on a name used twice or
// reserved ("__metadata__"), and when writing fails. Returns io::Checksum of the file.
uint64_t WriteSafetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                          const Metadata& metadata = {});

// The bytes WriteSafetensors would write.
std::string SafetensorsBytes(std::span<const TensorView> tensors, const Metadata& metadata = {});

template <typename T>
std::span<const T> TensorView::As() const {
  Check(dtype == DtypeOf<T>::kValue, "[safetensors] tensor \"", name, "\" is ", Name(dtype), "; expected ",
        Name(DtypeOf<T>::kValue));
  Check(reinterpret_cast<uintptr_t>(bytes.data()) % alignof(T) == 0, "[safetensors] tensor \"", name,
        "\" is not aligned in its file; write the file again with this project or the safetensors library");
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace lattice::io

#endif  // LATTICE_IO_SAFETENSORS_H_
