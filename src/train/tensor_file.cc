#include "train/tensor_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "io/safetensors.h"

namespace lattice::train {

uint64_t WriteTensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const io::Metadata& metadata) {
  std::vector<at::Tensor> held;
  std::vector<io::TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    Check(tensor.scalar_type() == at::kFloat, "[checkpoint] ", name, " is not float32");
    const at::Tensor& values = held.emplace_back(tensor.detach().contiguous());
    views.push_back(io::ViewOf<float>(name, values.sizes().vec(),
                                      {values.const_data_ptr<float>(), static_cast<size_t>(values.numel())}));
  }
  return io::WriteSafetensors(path, views, metadata);
}

NamedTensors ReadTensors(const std::filesystem::path& path) {
  const io::Safetensors file(path);
  NamedTensors tensors;
  for (const auto& [name, view] : file.tensors()) {
    const std::span<const float> values = view.As<float>();
    at::Tensor tensor = at::empty(view.shape, at::kFloat);
    std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
    tensors[name] = std::move(tensor);
  }
  return tensors;
}

}  // namespace lattice::train
