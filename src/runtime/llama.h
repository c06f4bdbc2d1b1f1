// Checkpoints of LLaMA's architecture as the Hugging Face libraries write them, through our transformer
// block.
#ifndef LATTICE_RUNTIME_LLAMA_H_
#define LATTICE_RUNTIME_LLAMA_H_

#include <filesystem>
#include <memory>
#include <string_view>

#include "model/config.h"
#include "runtime/model.h"

namespace lattice::runtime {

// The directory's config.json is of such a model: model_type llama or mistral.
bool IsLlama(const std::filesystem::path& directory);

// Our config for it. Throws Error for what our block does not compute: scaled rotary positions, biases,
// another activation, heads of another width than hidden_size / num_attention_heads.
model::ModelConfig LlamaConfig(const std::filesystem::path& directory);

// Reads model.safetensors, or the files that model.safetensors.index.json names, of F32, BF16 or F16, into
// `format`. Keys and values shared by several heads are repeated. Sliding windows are read as full attention.
// Throws Error that names the tensor when one is missing or of another shape.
std::shared_ptr<const Model> LoadLlama(const std::filesystem::path& directory, WeightFormat format);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_LLAMA_H_
