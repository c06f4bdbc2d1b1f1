// Loads checkpoints of LLaMA's architecture, as the Hugging Face libraries write them, into our transformer.
#ifndef LATTICE_RUNTIME_LLAMA_H_
#define LATTICE_RUNTIME_LLAMA_H_

#include <filesystem>
#include <memory>
#include <string_view>

#include "model/config.h"
#include "runtime/model.h"

namespace lattice::runtime {

// Whether the directory's config.json describes such a model: model_type llama or mistral.
bool IsLlama(const std::filesystem::path& directory);

// The equivalent config of ours. Throws Error for what our block does not compute: scaled rotary positions,
// biases, another activation, heads of another width than hidden_size / num_attention_heads.
model::ModelConfig LlamaConfig(const std::filesystem::path& directory);

// Reads model.safetensors, or the files that model.safetensors.index.json lists (F32, BF16 or F16), and
// converts to `format`. Grouped-query attention is expanded: keys and values shared by several heads are
// repeated. A sliding window is computed as full attention. Throws Error that names the tensor when one is
// missing or has the wrong shape.
std::shared_ptr<const Model> LoadLlama(const std::filesystem::path& directory, WeightFormat format);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_LLAMA_H_
