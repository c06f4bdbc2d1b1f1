// A model of another program, opened: what it is in our words, its tensors, its tokenizer, and what belongs to it.
#ifndef LATTICE_FOREIGN_FOREIGN_MODEL_H_
#define LATTICE_FOREIGN_FOREIGN_MODEL_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "runtime/weights.h"
#include "text/tokenizer.h"

namespace lattice::foreign {

struct ForeignModel {
  std::string format;        // "safetensors" or "gguf"
  std::string architecture;  // as its program calls it: "llama", "mistral"
  std::string name;          // empty when it has none
  std::string license;       // as it says: "apache-2.0"; empty when it does not say
  std::string weights;       // types of its tensors, for people: "210 Q4_1, 61 F32, 1 Q8_0"
  int64_t context = 0;       // longest text it was trained on; 0 when it does not say
  model::ModelConfig config;
  // Writes the values of a tensor. Holds what it reads from; throws Error that names the tensor.
  runtime::TensorSource fill;
  // Files that go with the model under their names: a licence, a chat template, the settings of generation.
  std::vector<text::TokenizerFile> files;
};

// `path` is a directory with config.json and safetensors as the Hugging Face libraries write them, or a GGUF file, or
// a directory with one GGUF file. Throws Error that names what is not known here: an architecture, a rotary scaling,
// a quantisation.
ForeignModel OpenForeign(const std::filesystem::path& path);

// The tokenizer of the same path. Throws Error that names a kind that is not known here.
std::unique_ptr<text::Tokenizer> OpenForeignTokenizer(const std::filesystem::path& path);

// "210 Q4_1, 61 F32" of the names of all tensors' types.
std::string CountTypes(const std::vector<std::string>& types);

// The licence files in a directory, with their contents.
std::vector<text::TokenizerFile> LicenseFiles(const std::filesystem::path& directory);

// Throws Error with the name of a tensor that would be left out: a model with more tensors computes something else.
void CheckAllUsed(const model::ModelConfig& config, const std::vector<std::string>& names,
                  std::string (*name_of)(std::string_view ours), const std::string& source);

}  // namespace lattice::foreign

#endif  // LATTICE_FOREIGN_FOREIGN_MODEL_H_
