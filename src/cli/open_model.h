// Opens a model for use, in the same way for all commands, so that they accept the same directories and give
// the same errors. Needs no torch.
#ifndef LATTICE_CLI_OPEN_MODEL_H_
#define LATTICE_CLI_OPEN_MODEL_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "model/config.h"
#include "runtime/model.h"
#include "text/tokenizer.h"

namespace lattice::cli {

struct OpenOptions {
  std::string tokenizer = {};                        // empty: the checkpoint's own
  std::optional<runtime::WeightFormat> format = {};  // none: the format of the file
};

struct OpenedModel {
  std::filesystem::path checkpoint;
  std::shared_ptr<const runtime::Model> model;
  std::unique_ptr<text::Tokenizer> tokenizer;
  bool foreign = false;  // LLaMA's architecture, not a checkpoint of ours
};

// `path` is a run or a checkpoint, ours or of LLaMA's architecture. Throws Error when there is none, when it
// is damaged, or when the tokenizer has more ids than the model's vocabulary.
OpenedModel OpenModel(const std::string& path, const OpenOptions& options = {});

// The same without the tokenizer.
std::shared_ptr<const runtime::Model> OpenWeights(const std::string& path,
                                                  std::optional<runtime::WeightFormat> format = {});

// The configuration of the model at `path`. Checks that the weights match it, without loading them.
model::ModelConfig OpenConfig(const std::string& path);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_OPEN_MODEL_H_
