// LLaMA's architecture in the words of others: the names of its tensors, and its config.json at Hugging Face.
#ifndef LATTICE_FOREIGN_LLAMA_H_
#define LATTICE_FOREIGN_LLAMA_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "model/config.h"

namespace lattice::foreign {

// The names that Hugging Face and GGUF give to our tensor `ours` of a transformer.
std::string HuggingFaceName(std::string_view ours);
std::string GgufName(std::string_view ours);

// Whether a config.json describes such a model: model_type llama or mistral.
bool IsLlamaConfig(const nlohmann::json& config);

// The equivalent config of ours. A sliding window is computed as full attention. Throws Error that names what our
// block does not compute: another model_type, rotary scaling other than linear and llama3, biases, another
// activation, heads of another width than hidden_size / num_attention_heads. `source` is what errors call it.
model::ModelConfig ConfigFromLlama(const nlohmann::json& config, const std::string& source);

// config.json of a LlamaForCausalLM that computes what our transformer with this config computes. `context` is the
// longest text it was trained on.
nlohmann::ordered_json LlamaFromConfig(const model::ModelConfig& config, std::string_view torch_dtype,
                                       int64_t context);

}  // namespace lattice::foreign

#endif  // LATTICE_FOREIGN_LLAMA_H_
