// `lattice import`: makes a model directory of ours from a checkpoint of Hugging Face or a GGUF file.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "base/format.h"
#include "cli/command.h"
#include "cli/origin.h"
#include "foreign/import.h"
#include "model/checkpoint.h"
#include "model/tensors.h"
#include "runtime/weights.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;

struct ImportFlags {
  std::string from;
  std::string out;
  std::string to = "float32";
};

int ImportModel(const ImportFlags& options) {
  const runtime::WeightFormat format = AsUsage([&] { return runtime::FormatNamed(options.to); });
  const fs::path out = options.out;
  if (fs::exists(out) && !(fs::is_directory(out) && fs::is_empty(out)))
    throw UsageError(StrCat("--out: ", out.string(), " exists already; choose another directory"));
  const foreign::Imported imported = foreign::Import(options.from, out, format);
  PrintOrigin(imported.origin);
  const model::ModelConfig& config = imported.config;
  std::cout << "model     " << config.layers << " layers, width " << config.width << ", " << config.heads
            << " heads over " << config.KvHeads() << " of keys and values, vocabulary " << config.vocab_size
            << ", " << Grouped(model::CountParameters(config).total) << " parameters\n"
            << "written   " << out.string() << ", "
            << BytesText(static_cast<int64_t>(fs::file_size(out / model::kWeightsFile))) << " of "
            << options.to << "\n";
  return 0;
}

}  // namespace

void AddImport(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("import", "Take over a pretrained LLaMA model, to run or convert it here");
  const auto options = std::make_shared<ImportFlags>();
  command
      ->add_option("from", options->from,
                   "directory with config.json and safetensors (Hugging Face), or a GGUF file")
      ->required();
  command->add_option("--out", options->out, "directory of the new model")->required();
  command->add_option("--to", options->to, "float32, bf16, int8 or int4")->capture_default_str();
  command->footer("Example: ./lattice import SmolLM2-135M-Instruct.Q4_1.gguf --out smollm2");
  command->callback([options, &chosen] { chosen = [options] { return ImportModel(*options); }; });
}

}  // namespace lattice::cli
