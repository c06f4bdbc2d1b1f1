// Writes and reads float32 tensors as safetensors files.
#ifndef LATTICE_TRAIN_TENSOR_FILE_H_
#define LATTICE_TRAIN_TENSOR_FILE_H_

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

#include "io/safetensors.h"

namespace lattice::train {

using NamedTensors = std::map<std::string, at::Tensor>;

// Writes atomically and returns io::Checksum of the file. Throws Error for a tensor that is not float32 and
// when writing fails.
uint64_t WriteTensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const io::Metadata& metadata = {});

// Copies of all tensors in the file. Throws Error when it is damaged or holds other types.
NamedTensors ReadTensors(const std::filesystem::path& path);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_TENSOR_FILE_H_
