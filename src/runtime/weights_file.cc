// Writes weights as a safetensors file, with packed matrices unpacked to row-major order.
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "io/safetensors.h"
#include "model/checkpoint.h"
#include "runtime/weights.h"

namespace lattice::runtime {
namespace {

io::Dtype DtypeOf(WeightFormat format) {
  switch (format) {
    case WeightFormat::kBf16:
      return io::Dtype::kBF16;
    case WeightFormat::kInt8:
      return io::Dtype::kI8;
    case WeightFormat::kInt4:
      return io::Dtype::kU8;
    case WeightFormat::kF32:
      break;
  }
  return io::Dtype::kF32;
}

// The bytes of a matrix in row-major order; a packed matrix is unpacked into `unpacked`.
std::span<const std::byte> ByRows(const WeightMatrix& matrix, std::vector<std::vector<std::byte>>& unpacked) {
  const int64_t row_bytes = kernels::RowBytes(matrix.format, matrix.cols);
  const auto bytes = static_cast<size_t>(matrix.rows * row_bytes);
  if (matrix.format == WeightFormat::kF32) return {static_cast<const std::byte*>(matrix.data), bytes};
  std::vector<std::byte>& rows = unpacked.emplace_back(bytes);
  for (int64_t row = 0; row < matrix.rows; ++row)
    kernels::UnpackRow(matrix.format, matrix.data, row, matrix.cols, rows.data() + row * row_bytes);
  return rows;
}

}  // namespace

std::string_view TorchName(WeightFormat format) {
  return format == WeightFormat::kBf16 ? "bfloat16" : "float32";
}

void WriteWeights(const model::ModelConfig& config, const Weights& weights, const std::filesystem::path& path,
                  std::string (*name_of)(std::string_view ours)) {
  std::vector<std::vector<uint16_t>> rounded;
  std::vector<std::vector<std::byte>> unpacked;
  std::vector<io::TensorView> views;
  for (const model::TensorInfo& info : model::ModelTensors(config)) {
    const std::string name = name_of == nullptr ? info.name : name_of(info.name);
    if (info.IsMatrix()) {
      const WeightMatrix& matrix = weights.Matrix(info.name);
      std::vector<int64_t> shape = info.shape;
      if (matrix.format == WeightFormat::kInt4)
        shape = {matrix.rows, kernels::GroupsOf(matrix.cols), kernels::kGroupBytes};
      views.push_back({name, DtypeOf(matrix.format), shape, ByRows(matrix, unpacked)});
      if (matrix.scales != nullptr) {
        views.push_back(io::ViewOf<float>(name + std::string(model::kScaleSuffix), {matrix.rows},
                                          {matrix.scales, static_cast<size_t>(matrix.rows)}));
      }
      continue;
    }
    const std::span<const float> values = weights.Vector(info.name);
    if (weights.format() == WeightFormat::kBf16) {
      std::vector<uint16_t>& half = rounded.emplace_back(values.size());
      kernels::RoundToBf16(values.data(), static_cast<int64_t>(values.size()), half.data());
      views.push_back({name, io::Dtype::kBF16, info.shape, std::as_bytes(std::span(half))});
    } else {
      views.push_back(io::ViewOf<float>(name, info.shape, values));
    }
  }
  io::WriteSafetensors(path, views, {{"format", "pt"}, {"weights", std::string(Name(weights.format()))}});
}

}  // namespace lattice::runtime
