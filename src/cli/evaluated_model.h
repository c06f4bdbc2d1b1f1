// The model that eval and inspect put under the lens, with its tokenizer. No torch.
#ifndef LATTICE_CLI_EVALUATED_MODEL_H_
#define LATTICE_CLI_EVALUATED_MODEL_H_

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/model.h"
#include "text/tokenizer.h"

namespace lattice::cli {

struct EvaluatedModel {
  std::filesystem::path checkpoint;
  std::shared_ptr<const runtime::Model> model;
  std::unique_ptr<text::Tokenizer> tokenizer;
  bool foreign = false;  // LLaMA's architecture, not a checkpoint of ours
};

// `path` is a run or a checkpoint, of ours or of LLaMA's architecture. An empty `tokenizer` means the
// checkpoint's own. Throws Error when there is none, or when it has ids that the model does not know.
EvaluatedModel OpenEvaluatedModel(const std::string& path, const std::string& tokenizer);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_EVALUATED_MODEL_H_
