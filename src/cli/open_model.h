// Opening a model for use: the one way of all commands, so that they take the same directories and refuse them
// with the same words. No torch.
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
  std::optional<runtime::WeightFormat> format = {};  // none: as the file has it
};

struct OpenedModel {
  std::filesystem::path checkpoint;
  std::shared_ptr<const runtime::Model> model;
  std::unique_ptr<text::Tokenizer> tokenizer;
  bool foreign = false;  // LLaMA's architecture, not a checkpoint of ours
};

// `path` is a run or a checkpoint, of ours or of LLaMA's architecture. Throws Error when there is none, when it
// is damaged, or when the tokenizer has ids that the model does not know.
OpenedModel OpenModel(const std::string& path, const OpenOptions& options = {});

// The same without the tokenizer.
std::shared_ptr<const runtime::Model> OpenWeights(const std::string& path,
                                                  std::optional<runtime::WeightFormat> format = {});

// What the model at `path` is; its weights are checked to be those of the configuration, but not loaded.
model::ModelConfig OpenConfig(const std::string& path);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_OPEN_MODEL_H_
