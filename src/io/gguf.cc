// Reads the header of a GGUF file front to back with a cursor that cannot leave the file.
#include "io/gguf.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/nearest.h"
#include "io/safetensors.h"

namespace lattice::io {
namespace {

constexpr uint32_t kOldest = 2, kNewest = 3;
constexpr uint64_t kMostDimensions = 4, kLargestAlignment = uint64_t{1} << 20;
constexpr std::string_view kAlignmentKey = "general.alignment";

enum class ValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64
};

// A place in the file. Everything read is checked against the bytes that are left.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  template <typename... Args>
  void Require(bool ok, const Args&... args) const {
    Check(ok, "[gguf] ", source_, ": ", args...);
  }

  template <typename T>
  T Read(std::string_view what) {
    T value;
    std::memcpy(&value, Take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string Text(std::string_view what, uint64_t longest) {
    const auto size = Read<uint64_t>(what);
    Require(size <= longest, what, " of ", size, " bytes; at most ", longest, " are accepted");
    const std::span<const std::byte> text = Take(size, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  // As long as the file has bytes.
  std::string Text(std::string_view what) { return Text(what, left()); }

 private:
  std::span<const std::byte> Take(uint64_t size, std::string_view what) {
    Require(size <= left(), what, " of ", size, " bytes at byte ", position_, " of a file of ", bytes_.size(),
            "; the file is truncated or damaged");
    const auto taken = bytes_.subspan(position_, size);
    position_ += size;
    return taken;
  }

  std::span<const std::byte> bytes_;
  std::string_view source_;
  size_t position_ = 0;
};

int64_t Integer(Cursor& cursor, ValueType type) {
  constexpr std::string_view kWhat = "a number";
  switch (type) {
    case ValueType::kUint8:
      return cursor.Read<uint8_t>(kWhat);
    case ValueType::kInt8:
      return cursor.Read<int8_t>(kWhat);
    case ValueType::kUint16:
      return cursor.Read<uint16_t>(kWhat);
    case ValueType::kInt16:
      return cursor.Read<int16_t>(kWhat);
    case ValueType::kUint32:
      return cursor.Read<uint32_t>(kWhat);
    case ValueType::kInt32:
      return cursor.Read<int32_t>(kWhat);
    case ValueType::kBool:
      return cursor.Read<uint8_t>(kWhat) != 0;
    case ValueType::kInt64:
      return cursor.Read<int64_t>(kWhat);
    default: {
      const auto value = cursor.Read<uint64_t>(kWhat);
      cursor.Require(value <= INT64_MAX, "the number ", value, " is beyond 2^63 - 1");
      return static_cast<int64_t>(value);
    }
  }
}

double Float(Cursor& cursor, ValueType type) {
  return type == ValueType::kFloat32 ? double{cursor.Read<float>("a number")}
                                     : cursor.Read<double>("a number");
}

bool IsFloat(ValueType type) { return type == ValueType::kFloat32 || type == ValueType::kFloat64; }

// The fewest bytes that a value of the type takes in the file.
uint64_t LeastBytes(ValueType type) {
  constexpr uint64_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return kBytes[static_cast<uint32_t>(type)];
}

ValueType TypeAt(Cursor& cursor, const std::string& key) {
  const auto type = cursor.Read<uint32_t>("the type of a value");
  cursor.Require(type <= static_cast<uint32_t>(ValueType::kFloat64), "\"", key, "\" has the unknown type ",
                 type);
  return static_cast<ValueType>(type);
}

GgufValue List(Cursor& cursor, const std::string& key) {
  const ValueType type = TypeAt(cursor, key);
  cursor.Require(type != ValueType::kArray, "\"", key, "\" is a list of lists, which is not read here");
  const auto count = cursor.Read<uint64_t>("the length of a list");
  cursor.Require(count <= cursor.left() / LeastBytes(type), "\"", key, "\" has ", count,
                 " values, more than the file has bytes for; it is truncated or damaged");
  const auto read = [&](auto values, const auto& one) {
    values.reserve(count);
    for (uint64_t i = 0; i < count; ++i) values.push_back(one());
    return values;
  };
  if (type == ValueType::kString)
    return read(std::vector<std::string>(), [&] { return cursor.Text("a text in a list"); });
  if (IsFloat(type)) return read(std::vector<double>(), [&] { return Float(cursor, type); });
  return read(std::vector<int64_t>(), [&] { return Integer(cursor, type); });
}

GgufValue ValueAt(Cursor& cursor, const std::string& key) {
  const ValueType type = TypeAt(cursor, key);
  if (type == ValueType::kString) return cursor.Text("a text");
  if (type == ValueType::kArray) return List(cursor, key);
  if (type == ValueType::kBool) return Integer(cursor, type) != 0;
  if (IsFloat(type)) return Float(cursor, type);
  return Integer(cursor, type);
}

struct Entry {
  GgufTensor tensor;
  uint64_t offset = 0, size = 0;
};

Entry EntryAt(Cursor& cursor, uint64_t alignment) {
  Entry entry;
  GgufTensor& tensor = entry.tensor;
  tensor.name = cursor.Text("the name of a tensor", Gguf::kLongestName);
  const auto dimensions = cursor.Read<uint32_t>("the number of dimensions");
  cursor.Require(dimensions >= 1 && dimensions <= kMostDimensions, "tensor \"", tensor.name, "\" has ",
                 dimensions, " dimensions; expected 1 to ", kMostDimensions);
  for (uint32_t i = 0; i < dimensions; ++i) tensor.shape.push_back(Integer(cursor, ValueType::kUint64));
  const auto type = cursor.Read<uint32_t>("the type of a tensor");
  const GgufTypeInfo* info = FindGgufType(type);
  cursor.Require(
      info != nullptr, "tensor \"", tensor.name, "\" is quantised as ", GgufTypeName(type),
      ", which is not read here; use a file of F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, "
      "Q5_K or Q6_K");
  tensor.type = info->type;
  cursor.Require(tensor.shape[0] % info->block == 0, "tensor \"", tensor.name, "\" has rows of ",
                 tensor.shape[0], " elements; ", info->name, " needs multiples of ", info->block);
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  const std::optional<int64_t> elements = TryElements(tensor.shape);
  const std::optional<int64_t> bytes = elements ? TryMul(*elements / info->block, info->bytes) : std::nullopt;
  cursor.Require(bytes.has_value(), "tensor \"", tensor.name, "\" of shape ", ShapeText(tensor.shape),
                 " has more elements than 64 bits can count");
  entry.size = static_cast<uint64_t>(*bytes);
  entry.offset = cursor.Read<uint64_t>("the offset of a tensor");
  cursor.Require(entry.offset % alignment == 0, "tensor \"", tensor.name, "\" at ", entry.offset,
                 " is not aligned to ", alignment);
  return entry;
}

// No two tensors share bytes.
void CheckOverlaps(std::vector<const Entry*> entries, const Cursor& cursor) {
  std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return std::tie(a->offset, a->size) < std::tie(b->offset, b->size);
  });
  uint64_t end = 0;
  for (const Entry* entry : entries) {
    cursor.Require(entry->offset >= end, "tensor \"", entry->tensor.name, "\" at ", entry->offset,
                   " overlaps the one before it, which ends at ", end);
    end = entry->offset + entry->size;
  }
}

void CheckStart(Cursor& cursor) {
  const auto magic = cursor.Read<uint32_t>("the first word");
  cursor.Require(magic == 0x46554747, "is not a GGUF file: it does not begin with \"GGUF\"");
  const auto version = cursor.Read<uint32_t>("the version");
  cursor.Require((version & 0xFFFF) != 0, "is a big-endian GGUF file; only little-endian ones are read here");
  cursor.Require(version >= kOldest && version <= kNewest, "is of version ", version, "; versions ", kOldest,
                 " to ", kNewest, " are read here");
}

}  // namespace

int64_t GgufTensor::elements() const {
  const GgufTypeInfo& info = InfoOf(type);
  return static_cast<int64_t>(bytes.size()) / info.bytes * info.block;
}

Gguf::Gguf(const std::filesystem::path& path) : file_(path), source_(path.string()) { Parse(file_->bytes()); }

Gguf::Gguf(std::span<const std::byte> bytes, std::string source) : source_(std::move(source)) {
  Parse(bytes);
}

void Gguf::Parse(std::span<const std::byte> bytes) {
  Cursor cursor(bytes, source_);
  CheckStart(cursor);
  const auto tensors = cursor.Read<uint64_t>("the number of tensors"),
             keys = cursor.Read<uint64_t>("of keys");
  cursor.Require(tensors <= kMostTensors && keys <= kMostKeys, tensors, " tensors and ", keys,
                 " keys; at most ", kMostTensors, " and ", kMostKeys, " are accepted");
  for (uint64_t i = 0; i < keys; ++i) {
    const std::string key = cursor.Text("a key", kLongestName);
    GgufValue value = ValueAt(cursor, key);
    cursor.Require(metadata_.try_emplace(key, std::move(value)).second, "the key \"", key, "\" occurs twice");
  }
  const int64_t* aligned = Find<int64_t>(kAlignmentKey);
  const auto alignment = static_cast<uint64_t>(aligned == nullptr ? 32 : *aligned);
  cursor.Require(std::has_single_bit(alignment) && alignment <= kLargestAlignment, "\"", kAlignmentKey,
                 "\" is ", alignment, "; expected a power of two up to ", kLargestAlignment);

  std::vector<Entry> entries;
  for (uint64_t i = 0; i < tensors; ++i) entries.push_back(EntryAt(cursor, alignment));
  const uint64_t start = (cursor.position() + alignment - 1) / alignment * alignment;
  const uint64_t size = bytes.size() >= start ? bytes.size() - start : 0;
  std::vector<const Entry*> by_offset;
  for (const Entry& entry : entries) {
    cursor.Require(entry.offset <= size && entry.size <= size - entry.offset, "tensor \"", entry.tensor.name,
                   "\" has ", entry.size, " bytes at ", entry.offset, " in a data section of ", size,
                   "; the file is truncated or damaged");
    by_offset.push_back(&entry);
  }
  CheckOverlaps(std::move(by_offset), cursor);
  for (Entry& entry : entries) {
    entry.tensor.bytes = bytes.subspan(start + entry.offset, entry.size);
    const std::string name = entry.tensor.name;
    cursor.Require(tensors_.try_emplace(name, std::move(entry.tensor)).second, "the tensor \"", name,
                   "\" occurs twice");
  }
}

const GgufTensor& Gguf::Get(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [known, tensor] : tensors_) names.push_back(known);
  Fail("[gguf] ", source_, " has no tensor \"", name, "\"", DidYouMean(name, names));
}

void Gguf::FailType(std::string_view key) const {
  Fail("[gguf] ", source_, ": \"", key, "\" has another type than expected");
}

void Gguf::FailMissing(std::string_view key) const {
  Fail("[gguf] ", source_, ": the key \"", key, "\" is missing");
}

}  // namespace lattice::io
