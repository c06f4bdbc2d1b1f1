// The model files of a checkpoint directory: config.json and model.safetensors. docs/checkpoint-format.md
// documents the format.
#ifndef LATTICE_MODEL_CHECKPOINT_H_
#define LATTICE_MODEL_CHECKPOINT_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "io/safetensors.h"
#include "model/config.h"

namespace lattice::model {

inline constexpr std::string_view kConfigFile = "config.json";
// Appended to the name of an int8 matrix: the tensor of its row scales.
inline constexpr std::string_view kScaleSuffix = ".scale";
inline constexpr std::string_view kWeightsFile = "model.safetensors";
// Added by training: its state, and the checksums of the other files.
inline constexpr std::string_view kTrainerFile = "trainer.json";

// Throws Error unless `checksum` is the one recorded for `file` in the trainer.json beside it. Does nothing
// if there is no trainer.json (a converted or foreign checkpoint), or it does not list the file.
void CheckRecordedChecksum(const std::filesystem::path& file, uint64_t checksum);

// Reads the file, computes its checksum and checks it in the same way.
void VerifyChecksum(const std::filesystem::path& file);

// The contents of config.json: the fields that other tools expect, then every key of [model]. `torch_dtype`
// is torch's name of the weights' type ("float32", "bfloat16").
std::string ModelToJson(const ModelConfig& config, std::string_view torch_dtype = "float32");

// Parses and validates config.json. Throws Error for another model_type, an unknown key (the file may be of a
// newer version, and ignoring the key could change the model), a missing mixer, vocab_size, layers, width or
// heads, and for values of the wrong type or out of range.
ModelConfig ModelFromJson(std::string_view json, std::string_view source);

// The same from DIRECTORY/config.json.
ModelConfig ReadModelConfig(const std::filesystem::path& directory);

// All three sections as JSON {"model": {...}, "train": {...}, "data": {...}} and back, for run records.
std::string ConfigToJson(const Config& config);
Config ConfigFromJson(std::string_view json, std::string_view source);

// Throws Error unless the file holds exactly the tensors of ModelTensors(config), with their shapes. Matrices
// (TensorInfo::IsMatrix) must all be F32, all BF16 or all F16, and the others of the same dtype or F32; or, in
// an int8 checkpoint, matrices are I8, each with a tensor "<name>.scale" F32 [rows], and all others are F32; or, in an
// int4 checkpoint, the same but for projections (TensorInfo::IsProjection), which are U8 [rows, RowBytes]
// (kernels/dense/groups.h). Returns the dtype of the projections.
io::Dtype CheckWeights(const ModelConfig& config, const io::Safetensors& file);

}  // namespace lattice::model

#endif  // LATTICE_MODEL_CHECKPOINT_H_
