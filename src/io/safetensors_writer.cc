// Writes safetensors files: checks the views, orders them, and writes header and data.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "io/json.h"
#include "io/safetensors.h"

namespace lattice::io {
namespace {

// Preserves the order of insertion, so that the header lists tensors in the order of the data section.
using OrderedJson = nlohmann::ordered_json;

constexpr size_t kAlignment = 8;

void CheckView(const TensorView& tensor) {
  Check(tensor.name != "__metadata__", "[safetensors] a tensor cannot be named \"__metadata__\"");
  const std::optional<int64_t> elements = TryElements(tensor.shape);
  const std::optional<int64_t> bytes = elements ? TryMul(*elements, ByteSize(tensor.dtype)) : std::nullopt;
  Check(bytes.has_value() && static_cast<uint64_t>(*bytes) == tensor.bytes.size(), "[safetensors] tensor \"",
        tensor.name, "\" (", Name(tensor.dtype), " ", ShapeText(tensor.shape), ") was given ",
        tensor.bytes.size(), " bytes");
}

std::vector<const TensorView*> InFileOrder(std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) {
    CheckView(tensor);
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    const int64_t wide_a = ByteSize(a->dtype), wide_b = ByteSize(b->dtype);
    return wide_a != wide_b ? wide_a > wide_b : a->name < b->name;
  });
  return order;
}

// The first two parts of the file: the length of the header, and the header.
std::string HeaderText(std::span<const TensorView* const> order, const Metadata& metadata,
                       std::string_view target) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t position = 0;
  for (const TensorView* tensor : order) {
    Check(!header.contains(tensor->name), "[safetensors] two tensors are named \"", tensor->name, "\"");
    const uint64_t end = position + tensor->bytes.size();
    header[tensor->name] = {
        {"dtype", Name(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {position, end}}};
    position = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const OrderedJson::exception&) {
    Fail("[safetensors] ", target, ": a tensor name or a metadata text is not valid UTF-8");
  }
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  const uint64_t length = text.size();
  std::string prefix(sizeof(length), '\0');
  std::memcpy(prefix.data(), &length, sizeof(length));
  return prefix + text;
}

}  // namespace

uint64_t WriteSafetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                          const Metadata& metadata) {
  const std::vector<const TensorView*> order = InFileOrder(tensors);
  const std::string header = HeaderText(order, metadata, path.string());
  AtomicFile file(path);
  file.Write(header);
  for (const TensorView* tensor : order) file.Write(tensor->bytes);
  file.Commit();
  return file.checksum();
}

std::string SafetensorsBytes(std::span<const TensorView> tensors, const Metadata& metadata) {
  const std::vector<const TensorView*> order = InFileOrder(tensors);
  std::string bytes = HeaderText(order, metadata, "the bytes");
  for (const TensorView* tensor : order)
    bytes.append(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size());
  return bytes;
}

}  // namespace lattice::io
