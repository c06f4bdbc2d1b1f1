// The tensors of a model to and from model.safetensors.
#ifndef LATTICE_OPS_WEIGHTS_H_
#define LATTICE_OPS_WEIGHTS_H_

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "base/export.h"
#include "model/config.h"

namespace lattice {

// Copies the values of the file into `parameters`, which are those of model::ModelTensors(config) in their order and
// shapes, of any floating-point type. Throws Error when the file is not one of such a model, or holds int8 or int4 weights.
LATTICE_EXPORT void LoadWeights(const model::ModelConfig& config, const std::filesystem::path& path,
                                std::span<const at::Tensor> parameters);

// Writes them in float32.
LATTICE_EXPORT void SaveWeights(const model::ModelConfig& config, const std::filesystem::path& path,
                                std::span<const at::Tensor> parameters,
                                const std::map<std::string, std::string>& metadata = {});

}  // namespace lattice

#endif  // LATTICE_OPS_WEIGHTS_H_
