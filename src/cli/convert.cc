// `lattice convert`: writes a checkpoint in another weight format.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "base/format.h"
#include "cli/command.h"
#include "cli/open_model.h"
#include "foreign/hugging_face.h"
#include "foreign/import.h"
#include "io/directory.h"
#include "io/file.h"
#include "model/checkpoint.h"
#include "runs/run_directory.h"
#include "runtime/model_parts.h"
#include "text/tokenizer.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;

// Said of models of which nobody knows the longest text they were trained on.
constexpr int64_t kContext = 2048;

struct ConvertFlags {
  std::string model;
  std::string to;
  std::string out;
  bool force = false;
};

constexpr std::string_view kForTransformers = "hf";

// Writes config and weights as a LlamaForCausalLM of transformers.
void WriteForTransformers(const OpenedModel& opened, const fs::path& to) {
  const auto origin = foreign::ReadOrigin(opened.checkpoint);
  const int64_t known = origin.has_value() ? origin->context : 0;
  foreign::WriteHuggingFace(opened.model->config(), opened.model->parts().weights,
                            known > 0 ? known : kContext, to);
}

void WriteOurs(const OpenedModel& opened, const fs::path& to) {
  io::MakeDirectories(to);
  const model::ModelConfig& config = opened.model->config();
  runtime::WriteWeights(config, opened.model->parts().weights, to / model::kWeightsFile);
  io::WriteFileAtomic(to / model::kConfigFile,
                      model::ModelToJson(config, runtime::TorchName(opened.model->format())));
}

int Convert(const ConvertFlags& options) {
  const bool for_transformers = options.to == kForTransformers;
  std::optional<runtime::WeightFormat> format;
  if (!for_transformers) format = AsUsage([&] { return runtime::FormatNamed(options.to); });
  const fs::path from = runs::FindCheckpoint(options.model);
  const fs::path to = options.out;
  if (fs::exists(to) && fs::equivalent(from, to)) {
    throw UsageError("--out is the checkpoint itself; choose another directory, the original is kept");
  }
  if (fs::exists(to) && !fs::is_empty(to) && !options.force) {
    throw UsageError(
        StrCat("--out: ", to.string(),
               " exists already; choose another directory, or pass --force to replace the model in it"));
  }
  const OpenedModel opened = OpenModel(options.model, {.format = format});
  for_transformers ? WriteForTransformers(opened, to) : WriteOurs(opened, to);
  text::SaveTokenizer(*opened.tokenizer, to);
  foreign::CopyBelongings(opened.checkpoint, to);
  const auto size = [](const fs::path& directory) {
    return BytesText(static_cast<int64_t>(fs::file_size(directory / model::kWeightsFile)));
  };
  std::cout << to.string() << ": " << size(to);
  if (!opened.foreign) std::cout << " (was " << size(from) << ")";  // others may have several files
  std::cout << "\n";
  return 0;
}

}  // namespace

void AddConvert(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("convert", "Write a checkpoint with smaller weights, to run it faster");
  const auto options = std::make_shared<ConvertFlags>();
  AddPlugins(*command);
  command->add_option("--model", options->model, "run directory or checkpoint")->required();
  command->add_option("--to", options->to, "bf16, int8 or float32; hf: a LLaMA model for transformers")
      ->required();
  command->add_option("--out", options->out, "directory of the new checkpoint")->required();
  command->add_flag("--force", options->force, "replace the model in a directory that exists");
  command->footer("Example: ./lattice convert --model runs/book-lattice_dec-1 --to int8 --out book-int8");
  command->callback([options, &chosen] { chosen = [options] { return Convert(*options); }; });
}

}  // namespace lattice::cli
