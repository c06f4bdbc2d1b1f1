// Checkpoints of LLaMA's architecture as the Hugging Face libraries write them.
#ifndef LATTICE_FOREIGN_HUGGING_FACE_H_
#define LATTICE_FOREIGN_HUGGING_FACE_H_

#include <filesystem>

#include "foreign/foreign_model.h"

namespace lattice::foreign {

// Whether the directory's config.json describes such a model.
bool IsLlama(const std::filesystem::path& directory);

// Its config alone. Throws Error for what our block does not compute (foreign/llama.h).
model::ModelConfig LlamaConfig(const std::filesystem::path& directory);

// Reads model.safetensors, or the files that model.safetensors.index.json lists (F32, BF16 or F16). Throws Error that
// names the tensor when one is missing, has the wrong shape, or is one that our transformer does not have.
ForeignModel OpenHuggingFace(const std::filesystem::path& directory);

// tokenizer.model or tokenizer.json, or what else text::OpenTokenizer finds there.
std::unique_ptr<text::Tokenizer> OpenHuggingFaceTokenizer(const std::filesystem::path& directory);

// Writes a transformer of ours as a LlamaForCausalLM: config.json and model.safetensors, in the format of `weights`,
// which may be float32 or bf16. Makes the directory.
void WriteHuggingFace(const model::ModelConfig& config, const runtime::Weights& weights, int64_t context,
                      const std::filesystem::path& directory);

}  // namespace lattice::foreign

#endif  // LATTICE_FOREIGN_HUGGING_FACE_H_
