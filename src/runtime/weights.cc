// Reads, converts and packs the weights of a model, and computes the hash that identifies them.
#include "runtime/weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/half.h"
#include "io/hash.h"
#include "kernels/dense/groups.h"
#include "kernels/engine/arena.h"
#include "model/checkpoint.h"

namespace lattice::runtime {
namespace {

constexpr size_t kHugePage = size_t{2} << 20, kBlock = 16 * kHugePage, kCacheLine = 64;

size_t RoundUp(size_t bytes, size_t to) { return (std::max<size_t>(bytes, 1) + to - 1) / to * to; }

constexpr std::string_view kNames[] = {"float32", "bf16", "int8", "int4"};
constexpr WeightFormat kFormats[] = {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kInt8,
                                     WeightFormat::kInt4};

// Converts F32, BF16 or F16 to float32. The bytes may be unaligned.
void WidenBytes(io::Dtype dtype, std::span<const std::byte> bytes, float* out) {
  if (dtype == io::Dtype::kF32) {
    std::memcpy(out, bytes.data(), bytes.size());
    return;
  }
  for (size_t i = 0; i < bytes.size() / 2; ++i) {
    uint16_t half;
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    out[i] = dtype == io::Dtype::kBF16 ? io::WidenBf16(half) : io::WidenF16(half);
  }
}

void HashSamples(io::Sha256& hash, std::span<const std::byte> bytes) {
  constexpr size_t kSample = 4096, kSamples = 4;
  for (size_t at = 0; at < bytes.size(); at += std::max(kSample, bytes.size() / kSamples)) {
    hash.Update(bytes.subspan(at, std::min(kSample, bytes.size() - at)));
  }
}

// A row in the order of files: in the matrix itself, or unpacked into this thread's arena.
const void* StoredRow(const WeightMatrix& matrix, int64_t row) {
  const int64_t bytes = kernels::RowBytes(matrix.format, matrix.cols);
  if (matrix.format == WeightFormat::kF32) return static_cast<const std::byte*>(matrix.data) + row * bytes;
  void* values = kernels::ThreadArena(static_cast<size_t>(bytes));
  kernels::UnpackRow(matrix.format, matrix.data, row, matrix.cols, values);
  return values;
}

// Hashes a few rows in the order of files, because the packed order may change from version to version.
void HashRows(io::Sha256& hash, const WeightMatrix& matrix) {
  constexpr int64_t kSamples = 4;
  const int64_t row_bytes = kernels::RowBytes(matrix.format, matrix.cols);
  for (int64_t i = 0; i < matrix.rows; i += std::max<int64_t>(1, matrix.rows / kSamples)) {
    hash.Update({static_cast<const std::byte*>(StoredRow(matrix, i)), static_cast<size_t>(row_bytes)});
  }
}

// Converts a row of `cols` values to float32; `scale` is used for int8.
void WidenValues(WeightFormat format, const void* values, float scale, int64_t cols, float* out) {
  switch (format) {
    case WeightFormat::kF32:
      std::memcpy(out, values, static_cast<size_t>(cols) * sizeof(float));
      break;
    case WeightFormat::kBf16:
      kernels::WidenBf16(static_cast<const uint16_t*>(values), cols, out);
      break;
    case WeightFormat::kInt8:
      for (int64_t i = 0; i < cols; ++i)
        out[i] = scale * static_cast<float>(static_cast<const int8_t*>(values)[i]);
      break;
    case WeightFormat::kInt4:
      kernels::WidenGroups(static_cast<const std::byte*>(values), cols, out);
      break;
  }
}

// The opposite, for the formats of panels: a row as files hold it. `scale` is written for int8.
void NarrowRow(WeightFormat format, std::span<const float> row, std::byte* out, float* scale) {
  const auto cols = static_cast<int64_t>(row.size());
  switch (format) {
    case WeightFormat::kF32:
      break;
    case WeightFormat::kBf16:
      kernels::RoundToBf16(row.data(), cols, reinterpret_cast<uint16_t*>(out));
      break;
    case WeightFormat::kInt8:
      kernels::QuantizeWeights(row.data(), cols, reinterpret_cast<int8_t*>(out), scale);
      break;
    case WeightFormat::kInt4:
      kernels::QuantizeGroups(row.data(), cols, out);
      break;
  }
}

}  // namespace

void WidenTensor(const io::TensorView& tensor, float* out) {
  const bool known =
      tensor.dtype == io::Dtype::kF32 || tensor.dtype == io::Dtype::kBF16 || tensor.dtype == io::Dtype::kF16;
  Check(known, "[checkpoint] \"", tensor.name, "\" is ", io::Name(tensor.dtype),
        "; expected F32, BF16 or F16");
  WidenBytes(tensor.dtype, tensor.bytes, out);
}

std::string_view Name(WeightFormat format) { return kNames[static_cast<int>(format)]; }

WeightFormat FormatOf(const model::TensorInfo& info, WeightFormat format) {
  return format == WeightFormat::kInt4 && !info.IsProjection() ? WeightFormat::kInt8 : format;
}

WeightFormat FormatNamed(std::string_view name) {
  for (const WeightFormat format : kFormats) {
    if (Name(format) == name) return format;
  }
  Fail("[weights] unknown format \"", name, "\"", DidYouMean(name, kNames));
}

HugePageBuffer::HugePageBuffer(size_t bytes) : bytes_(RoundUp(bytes, kHugePage)) {
  data_ = static_cast<std::byte*>(std::aligned_alloc(kHugePage, bytes_));
  if (data_ == nullptr) throw std::bad_alloc();
  ::madvise(data_, bytes_, MADV_HUGEPAGE);
}

HugePageBuffer::~HugePageBuffer() { std::free(data_); }

HugePageBuffer::HugePageBuffer(HugePageBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

namespace {

struct FileImage {
  HugePageBuffer buffer;
  size_t bytes = 0;
};

// Reads the whole file into memory; each piece is added to the checksum while it is in the cache. The file is
// not mapped, because truncating a mapped file kills the process that reads it.
FileImage ReadImage(const model::ModelConfig& config, const std::filesystem::path& path) {
  constexpr size_t kPiece = size_t{1} << 18;
  const io::ReadOnlyFile file(path);
  // A sparse file may claim any size, so the size is checked before memory is allocated for it.
  size_t most = io::Safetensors::kMaxHeaderBytes;
  for (const model::TensorInfo& info : model::ModelTensors(config)) {
    // A group of int4 may be mostly padding.
    const int64_t int4 =
        info.IsProjection() ? info.shape[0] * kernels::RowBytes(WeightFormat::kInt4, info.shape[1]) : 0;
    most += static_cast<size_t>(std::max(int4, 4 * info.Elements()));
  }
  Check(file.size() <= most, "[checkpoint] ", path.string(), " has ", file.size(),
        " bytes; the weights of its config.json have at most ", most);
  FileImage image = {HugePageBuffer(file.size()), file.size()};
  io::ChecksumStream checksum;
  for (std::span rest(image.buffer.data(), image.bytes); !rest.empty();) {
    const std::span<std::byte> piece = rest.first(std::min(kPiece, rest.size()));
    Check(file.Read(piece) == piece.size(), "[checkpoint] ", path.string(), " shrank while it was read");
    checksum.Update(piece);
    rest = rest.subspan(piece.size());
  }
  model::CheckRecordedChecksum(path, checksum.value());
  return image;
}

}  // namespace

std::byte* Weights::Allocate(size_t bytes) {
  bytes = RoundUp(bytes, kCacheLine);
  if (used_ + bytes > room_) {
    room_ = std::max(bytes, kBlock);
    used_ = 0;
    owned_.emplace_back(room_);
  }
  return owned_.back().data() + std::exchange(used_, used_ + bytes);
}

Weights::Weights(const model::ModelConfig& config, const std::filesystem::path& path,
                 std::optional<WeightFormat> format) {
  FileImage image = ReadImage(config, path);
  const io::Safetensors file({image.buffer.data(), image.bytes}, path.string());
  const io::Dtype dtype = model::CheckWeights(config, file);
  format_ = format.value_or(dtype == io::Dtype::kU8     ? WeightFormat::kInt4
                            : dtype == io::Dtype::kI8   ? WeightFormat::kInt8
                            : dtype == io::Dtype::kBF16 ? WeightFormat::kBf16
                                                        : WeightFormat::kF32);
  // float32 tensors are used where they were read, all others are copied.
  if (format_ == WeightFormat::kF32 && dtype == io::Dtype::kF32) owned_.push_back(std::move(image.buffer));
  for (const model::TensorInfo& info : model::ModelTensors(config)) {
    if (!info.IsMatrix()) {
      vectors_[info.name] = Widened(file.Get(info.name));
      continue;
    }
    if (dtype == io::Dtype::kF16) {
      matrices_[info.name] = Converted({WeightFormat::kF32, info.shape[0], info.shape[1],
                                        std::as_bytes(Widened(file.Get(info.name))).data(), nullptr},
                                       FormatOf(info, format_));
    } else {
      matrices_[info.name] = Converted(AsStored(file, info), FormatOf(info, format_));
    }
  }
  HashAndCount(config);
}

Weights::Weights(const model::ModelConfig& config, const TensorSource& fill, WeightFormat format,
                 const RowSource& rows)
    : format_(format) {
  for (const model::TensorInfo& info : model::ModelTensors(config)) {
    if (const std::byte* ready = info.IsMatrix() && rows ? rows(info) : nullptr; ready != nullptr) {
      const WeightFormat stored = FormatOf(info, format);
      matrices_[info.name] = Packed({stored, info.shape[0], info.shape[1], ready, nullptr}, stored);
      continue;
    }
    const auto count = static_cast<size_t>(info.Elements());
    const bool kept = !info.IsMatrix() || format == WeightFormat::kF32;
    std::vector<float> passing(kept ? 0 : count);
    const std::span<float> floats(
        kept ? reinterpret_cast<float*>(Allocate(count * sizeof(float))) : passing.data(), count);
    fill(info, floats);
    if (!info.IsMatrix()) {
      vectors_[info.name] = floats;
      continue;
    }
    matrices_[info.name] =
        Converted({WeightFormat::kF32, info.shape[0], info.shape[1], std::as_bytes(floats).data(), nullptr},
                  FormatOf(info, format));
  }
  HashAndCount(config);
}

Weights::StoredMatrix Weights::AsStored(const io::Safetensors& file, const model::TensorInfo& info) {
  const io::TensorView& view = file.Get(info.name);
  StoredMatrix matrix = {WeightFormat::kF32, info.shape[0], info.shape[1], view.bytes.data(), nullptr};
  if (view.dtype == io::Dtype::kBF16) matrix.format = WeightFormat::kBf16;
  if (view.dtype == io::Dtype::kU8) {
    matrix.format = WeightFormat::kInt4;
    for (int64_t at = 0; at < static_cast<int64_t>(view.bytes.size()); at += kernels::kGroupBytes) {
      const kernels::Grid grid = kernels::GridOf(view.bytes.data() + at);
      Check(std::isfinite(grid.factor) && std::isfinite(grid.offset), "[checkpoint] ", file.source(),
            ": a factor or an offset of \"", info.name,
            "\" is not a number; convert the float32 checkpoint again");
    }
  }
  if (view.dtype == io::Dtype::kI8) {
    matrix.format = WeightFormat::kInt8;
    const auto scales = file.Get(info.name + std::string(model::kScaleSuffix)).As<float>();
    for (const float scale : scales) {
      Check(std::isfinite(scale), "[checkpoint] ", file.source(), ": a scale of \"", info.name,
            "\" is not a number; convert the float32 checkpoint again");
    }
    matrix.scales = scales.data();
  }
  const auto address = reinterpret_cast<uintptr_t>(view.bytes.data());
  Check(address % static_cast<uintptr_t>(io::ByteSize(view.dtype)) == 0, "[checkpoint] ", file.source(),
        ": \"", info.name, "\" is not aligned; write the file again with this project");
  return matrix;
}

void Weights::StoredMatrix::Widen(int64_t row, float* out) const {
  WidenValues(format, data + row * kernels::RowBytes(format, cols), scales == nullptr ? 1 : scales[row], cols,
              out);
}

WeightMatrix Weights::Converted(const StoredMatrix& from, WeightFormat to) {
  if (to != WeightFormat::kF32) return Packed(from, to);
  if (from.format == WeightFormat::kF32) return {to, from.rows, from.cols, from.data, nullptr};
  auto* out = reinterpret_cast<float*>(Allocate(static_cast<size_t>(from.rows * from.cols) * sizeof(float)));
  for (int64_t row = 0; row < from.rows; ++row) from.Widen(row, out + row * from.cols);
  return {to, from.rows, from.cols, out, nullptr};
}

WeightMatrix Weights::Packed(const StoredMatrix& from, WeightFormat format) {
  WeightMatrix to = {format, from.rows, from.cols, nullptr, nullptr};
  std::byte* panel = Allocate(static_cast<size_t>(to.StoredBytes()));
  to.data = panel;
  float* scales = nullptr;
  if (format == WeightFormat::kInt8) {
    scales = reinterpret_cast<float*>(Allocate(static_cast<size_t>(from.rows) * sizeof(float)));
    if (from.scales != nullptr) std::copy_n(from.scales, from.rows, scales);
    to.scales = scales;
  }
  const int64_t row_bytes = kernels::RowBytes(format, from.cols);
  std::vector<float> wide(static_cast<size_t>(from.cols));
  std::vector<std::byte> rounded(static_cast<size_t>(kernels::kPanelRows * row_bytes));
  for (int64_t first = 0; first < from.rows; first += kernels::kPanelRows) {
    const int64_t count = std::min(kernels::kPanelRows, from.rows - first);
    for (int64_t i = 0; from.format != format && i < count; ++i) {
      from.Widen(first + i, wide.data());
      NarrowRow(format, wide, rounded.data() + i * row_bytes,
                scales == nullptr ? nullptr : scales + first + i);
    }
    const std::byte* rows = from.format == format ? from.data + first * row_bytes : rounded.data();
    kernels::PackPanel(format, rows, count, from.cols, panel);
    panel += kernels::PanelBytes(format, from.cols);
  }
  return to;
}

std::span<const float> Weights::Widened(const io::TensorView& view) {
  const auto count = static_cast<size_t>(view.elements());
  auto* out = reinterpret_cast<float*>(Allocate(count * sizeof(float)));
  WidenBytes(view.dtype, view.bytes, out);
  return {out, count};
}

void Weights::HashAndCount(const model::ModelConfig& config) {
  io::Sha256 hash;
  hash.Update(model::ModelToJson(config));
  hash.Update(Name(format_));
  for (const auto& [name, matrix] : matrices_) {
    hash.Update(name);
    HashRows(hash, matrix);
    if (matrix.scales != nullptr) {
      HashSamples(hash, std::as_bytes(std::span(matrix.scales, static_cast<size_t>(matrix.rows))));
    }
    if (name != "embed.weight" || config.tie_embedding) bytes_per_token_ += matrix.Bytes();
  }
  for (const auto& [name, values] : vectors_) {
    hash.Update(name);
    HashSamples(hash, std::as_bytes(values));
    bytes_per_token_ += static_cast<int64_t>(values.size_bytes());
  }
  hash_ = hash.Finish();
}

const WeightMatrix& Weights::Matrix(std::string_view name) const {
  const auto at = matrices_.find(name);
  Check(at != matrices_.end(), "[weights] there is no matrix \"", name, "\"");
  return at->second;
}

std::span<const float> Weights::Vector(std::string_view name) const {
  const auto at = vectors_.find(name);
  Check(at != vectors_.end(), "[weights] there is no tensor \"", name, "\"");
  return at->second;
}

void WidenRow(const WeightMatrix& matrix, int64_t row, float* out) {
  WidenValues(matrix.format, StoredRow(matrix, row), matrix.scales == nullptr ? 1 : matrix.scales[row],
              matrix.cols, out);
}

}  // namespace lattice::runtime
