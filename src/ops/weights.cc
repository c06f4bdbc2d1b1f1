#include "ops/weights.h"

#include <ATen/ATen.h>

#include <vector>

#include "base/error.h"
#include "io/safetensors.h"
#include "model/checkpoint.h"
#include "model/tensors.h"

namespace lattice {
namespace {

at::ScalarType TypeOf(io::Dtype dtype) {
  switch (dtype) {
    case io::Dtype::kBF16:
      return at::kBFloat16;
    case io::Dtype::kF16:
      return at::kHalf;
    default:
      return at::kFloat;
  }
}

std::vector<model::TensorInfo> TensorsFor(const model::ModelConfig& config,
                                          std::span<const at::Tensor> parameters) {
  std::vector<model::TensorInfo> tensors = model::ModelTensors(config);
  Check(tensors.size() == parameters.size(), "[model] a ", config.MixerText(),
        " model of this configuration has ", tensors.size(), " tensors, got ", parameters.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    Check(parameters[i].sizes() == at::IntArrayRef(tensors[i].shape), "[model] ", tensors[i].name,
          " has the shape ", at::IntArrayRef(tensors[i].shape), ", got ", parameters[i].sizes());
  }
  return tensors;
}

}  // namespace

void LoadWeights(const model::ModelConfig& config, const std::filesystem::path& path,
                 std::span<const at::Tensor> parameters) {
  const std::vector<model::TensorInfo> tensors = TensorsFor(config, parameters);
  const io::Safetensors file(path);
  const io::Dtype dtype = model::CheckWeights(config, file);
  Check(dtype != io::Dtype::kI8 && dtype != io::Dtype::kU8, "[model] ", path.string(), " holds ",
        dtype == io::Dtype::kU8 ? "int4" : "int8",
        " weights: it can be run (./lattice generate) but not trained; use the float32 checkpoint");
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const io::TensorView& view = file.Get(tensors[i].name);
    // from_blob wants a mutable pointer; the mapped file is only read.
    void* data = const_cast<std::byte*>(view.bytes.data());
    parameters[i].copy_(at::from_blob(data, tensors[i].shape, at::TensorOptions().dtype(TypeOf(view.dtype))));
  }
}

void SaveWeights(const model::ModelConfig& config, const std::filesystem::path& path,
                 std::span<const at::Tensor> parameters, const std::map<std::string, std::string>& metadata) {
  const std::vector<model::TensorInfo> tensors = TensorsFor(config, parameters);
  std::vector<at::Tensor> held;
  std::vector<io::TensorView> views;
  for (size_t i = 0; i < tensors.size(); ++i) {
    held.push_back(parameters[i].detach().to(at::kCPU, at::kFloat).contiguous());
    const at::Tensor& value = held.back();
    views.push_back(io::ViewOf<float>(tensors[i].name, tensors[i].shape,
                                      {value.const_data_ptr<float>(), static_cast<size_t>(value.numel())}));
  }
  io::WriteSafetensors(path, views, metadata);
}

}  // namespace lattice
