// The files of a checkpoint directory that describe the model: config.json and model.safetensors. The format
// is documented in docs/checkpoint-format.md.
#ifndef LATTICE_MODEL_CHECKPOINT_H_
#define LATTICE_MODEL_CHECKPOINT_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "io/safetensors.h"
#include "model/config.h"

namespace lattice::model {

inline constexpr std::string_view kConfigFile = "config.json";
// Behind the name of an int8 matrix: the factors of its rows.
inline constexpr std::string_view kScaleSuffix = ".scale";
inline constexpr std::string_view kWeightsFile = "model.safetensors";
// What training adds: its own state, and the checksums of the other files.
inline constexpr std::string_view kTrainerFile = "trainer.json";

// Throws Error unless `checksum` is the one that trainer.json beside `file` records for it. Where there is no
// trainer.json (a converted or foreign checkpoint), or it does not name the file, there is nothing to compare
// with.
void CheckRecordedChecksum(const std::filesystem::path& file, uint64_t checksum);

// The same for the checksum of the file as it is; reads it once.
void VerifyChecksum(const std::filesystem::path& file);

// config.json: the fields the ecosystem looks for, then every key of [model]. `torch_dtype` is the weights'
// type as torch names it ("float32", "bfloat16").
std::string ModelToJson(const ModelConfig& config, std::string_view torch_dtype = "float32");

// Reads it back and validates. Throws Error for another model_type, a key that is unknown (the file may be of
// a newer version: ignoring it could change the model), a missing mixer, vocab_size, layers, width or heads,
// and for values of the wrong type or out of range.
ModelConfig ModelFromJson(std::string_view json, std::string_view source);

// The same from DIRECTORY/config.json.
ModelConfig ReadModelConfig(const std::filesystem::path& directory);

// All three sections as JSON {"model": {...}, "train": {...}, "data": {...}} and back, for run records.
std::string ConfigToJson(const Config& config);
Config ConfigFromJson(std::string_view json, std::string_view source);

// Throws Error unless the file holds exactly the tensors of ModelTensors(config), each of its shape and all
// of one dtype among F32, BF16 and F16, or is an int8 checkpoint: matrices (TensorInfo::IsMatrix) I8 with
// "<name>.scale" F32 [rows] beside them, all others F32. Returns the dtype of the matrices.
io::Dtype CheckWeights(const ModelConfig& config, const io::Safetensors& file);

}  // namespace lattice::model

#endif  // LATTICE_MODEL_CHECKPOINT_H_
