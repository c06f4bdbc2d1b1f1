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
    case WeightFormat::kF32:
      break;
  }
  return io::Dtype::kF32;
}

}  // namespace

void WriteWeights(const model::ModelConfig& config, const Weights& weights,
                  const std::filesystem::path& path) {
  std::vector<std::vector<uint16_t>> rounded;
  std::vector<io::TensorView> views;
  for (const model::TensorInfo& info : model::ModelTensors(config)) {
    if (info.IsMatrix()) {
      const WeightMatrix& matrix = weights.Matrix(info.name);
      const io::Dtype dtype = DtypeOf(matrix.format);
      const auto bytes = static_cast<size_t>(info.Elements() * io::ByteSize(dtype));
      views.push_back({info.name, dtype, info.shape, {static_cast<const std::byte*>(matrix.data), bytes}});
      if (matrix.scales != nullptr) {
        views.push_back(io::ViewOf<float>(info.name + std::string(model::kScaleSuffix), {matrix.rows},
                                          {matrix.scales, static_cast<size_t>(matrix.rows)}));
      }
      continue;
    }
    const std::span<const float> values = weights.Vector(info.name);
    if (weights.format() == WeightFormat::kBf16) {
      std::vector<uint16_t>& half = rounded.emplace_back(values.size());
      kernels::RoundToBf16(values.data(), static_cast<int64_t>(values.size()), half.data());
      views.push_back({info.name, io::Dtype::kBF16, info.shape, std::as_bytes(std::span(half))});
    } else {
      views.push_back(io::ViewOf<float>(info.name, info.shape, values));
    }
  }
  io::WriteSafetensors(path, views, {{"format", "pt"}, {"weights", std::string(Name(weights.format()))}});
}

}  // namespace lattice::runtime
