// Reads safetensors files: splits header and data, checks that every tensor lies inside the data, and makes
// views.
#include "io/safetensors.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/nearest.h"
#include "io/safetensors_header.h"

namespace lattice::io {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = Safetensors::kMaxHeaderBytes;

// The text of the header, and the data section that follows it.
struct Sections {
  std::string_view header;
  std::span<const std::byte> data;
};

Sections SplitFile(std::span<const std::byte> bytes, std::string_view source) {
  Check(bytes.size() >= kLengthBytes, "[safetensors] ", source, " has ", bytes.size(),
        " bytes; a safetensors file has at least 8");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  Check(length <= kMaxHeaderBytes, "[safetensors] ", source, ": header of ", length, " bytes; at most ",
        kMaxHeaderBytes, " are accepted. Is this a safetensors file?");
  Check(length <= bytes.size() - kLengthBytes, "[safetensors] ", source, ": header of ", length,
        " bytes in a file of ", bytes.size(), "; the file is truncated or no safetensors file");
  return {{reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, static_cast<size_t>(length)},
          bytes.subspan(kLengthBytes + static_cast<size_t>(length))};
}

// The bytes that a tensor has by its dtype and shape.
uint64_t ExpectedBytes(const TensorEntry& entry, std::string_view source) {
  const std::optional<int64_t> elements = TryElements(entry.shape);
  const std::optional<int64_t> bytes = elements ? TryMul(*elements, ByteSize(entry.dtype)) : std::nullopt;
  Check(bytes.has_value(), "[safetensors] ", source, ": tensor \"", entry.name, "\" of shape ",
        ShapeText(entry.shape), " has more elements than 64 bits can count");
  return static_cast<uint64_t>(*bytes);
}

void CheckEntry(const TensorEntry& entry, uint64_t data_bytes, std::string_view source) {
  Check(entry.begin <= entry.end && entry.end <= data_bytes, "[safetensors] ", source, ": tensor \"",
        entry.name, "\" has data_offsets [", entry.begin, ", ", entry.end, "] in a data section of ",
        data_bytes, " bytes; the file is truncated or damaged");
  const uint64_t expected = ExpectedBytes(entry, source);
  Check(entry.end - entry.begin == expected, "[safetensors] ", source, ": tensor \"", entry.name, "\" (",
        Name(entry.dtype), " ", ShapeText(entry.shape), ") needs ", expected, " bytes but has ",
        entry.end - entry.begin);
}

// Tensors must cover the data section without gaps and without sharing bytes.
void CheckLayout(std::vector<TensorEntry>& entries, uint64_t data_bytes, std::string_view source) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t position = 0;
  for (const TensorEntry& entry : entries) {
    Check(entry.begin >= position, "[safetensors] ", source, ": tensor \"", entry.name, "\" at ", entry.begin,
          " overlaps the one before it, which ends at ", position);
    Check(entry.begin == position, "[safetensors] ", source, ": ", entry.begin - position,
          " bytes before tensor \"", entry.name, "\" belong to no tensor");
    position = entry.end;
  }
  Check(position == data_bytes, "[safetensors] ", source, ": ", data_bytes - position,
        " bytes at the end belong to no tensor");
}

}  // namespace

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

Safetensors::Safetensors(const std::filesystem::path& path) : file_(path), source_(path.string()) {
  Parse(file_->bytes());
}

Safetensors::Safetensors(std::span<const std::byte> bytes, std::string source) : source_(std::move(source)) {
  Parse(bytes);
}

void Safetensors::Parse(std::span<const std::byte> content) {
  const Sections sections = SplitFile(content, source_);
  SafetensorsHeader header = ParseSafetensorsHeader(sections.header, source_);
  for (const TensorEntry& entry : header.tensors) CheckEntry(entry, sections.data.size(), source_);
  CheckLayout(header.tensors, sections.data.size(), source_);
  metadata_ = std::move(header.metadata);
  for (TensorEntry& entry : header.tensors) {
    const auto bytes = sections.data.subspan(entry.begin, entry.end - entry.begin);
    std::string name = entry.name;
    tensors_.emplace(std::move(name),
                     TensorView{std::move(entry.name), entry.dtype, std::move(entry.shape), bytes});
  }
}

const TensorView& Safetensors::Get(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [known, tensor] : tensors_) names.push_back(known);
  Fail("[safetensors] ", source_, " has no tensor \"", name, "\"", DidYouMean(name, names));
}

}  // namespace lattice::io
