// `lattice convert`: writes a checkpoint in another weight format.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "base/format.h"
#include "cli/command.h"
#include "cli/corpus_tokens.h"
#include "cli/open_model.h"
#include "cli/progress_bar.h"
#include "foreign/hugging_face.h"
#include "foreign/import.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/project_files.h"
#include "model/checkpoint.h"
#include "quantize/calibrate.h"
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
  std::string calibrate;
  int64_t calibration_tokens = 16384;
  int threads = 0;
  bool plain = false;
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

void WriteOurs(const model::ModelConfig& config, const runtime::Weights& weights, const fs::path& to) {
  io::MakeDirectories(to);
  runtime::WriteWeights(config, weights, to / model::kWeightsFile);
  io::WriteFileAtomic(to / model::kConfigFile,
                      model::ModelToJson(config, runtime::TorchName(weights.format())));
}

fs::path CalibrationText(const ConvertFlags& options) {
  if (!options.calibrate.empty()) return options.calibrate;
  const fs::path novels = io::FindProjectFile("data/austen/train");
  if (novels.empty()) {
    throw UsageError(
        "--to int4 fits weights to a text, and the novels that come with the project are not here; pass "
        "--calibrate FILE, or --no-calibration to round every weight on its own");
  }
  return novels;
}

// The int4 weights of a float32 model.
runtime::Weights Calibrate(const OpenedModel& opened, const ConvertFlags& options) {
  const std::vector<int32_t> tokens = CorpusTokens(CalibrationText(options), *opened.tokenizer, 0);
  ProgressBar bar("calibration");
  quantize::CalibrationOptions how = {
      .threads = options.threads, .progress = [&](int64_t done, int64_t total) { bar.Show(done, total); }};
  how.windows = std::max<int64_t>(1, options.calibration_tokens / how.window);
  return quantize::Calibrated(opened.model, tokens, how);
}

int Convert(const ConvertFlags& options) {
  const bool for_transformers = options.to == kForTransformers;
  std::optional<runtime::WeightFormat> format;
  if (!for_transformers) format = AsUsage([&] { return runtime::FormatNamed(options.to); });
  const bool calibrated = format == runtime::WeightFormat::kInt4 && !options.plain;
  if (!options.calibrate.empty() && !calibrated)
    throw UsageError("--calibrate belongs to --to int4 without --no-calibration; other formats need no text");
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
  const OpenedModel opened =
      OpenModel(options.model, {.format = calibrated ? runtime::WeightFormat::kF32 : format});
  if (for_transformers) {
    WriteForTransformers(opened, to);
  } else if (calibrated) {
    WriteOurs(opened.model->config(), Calibrate(opened, options), to);
  } else {
    WriteOurs(opened.model->config(), opened.model->parts().weights, to);
  }
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
  command->add_option("--to", options->to, "bf16, int8, int4 or float32; hf: a LLaMA model for transformers")
      ->required();
  command->add_option("--out", options->out, "directory of the new checkpoint")->required();
  command->add_option("--calibrate", options->calibrate,
                      "int4: text that the weights are fitted to (file, directory of .txt files, or token "
                      "shards); default: the novels of data/austen/train");
  command
      ->add_option("--calibration-tokens", options->calibration_tokens,
                   "int4: how much of the text is read, in windows of 512 that are spread over it")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{512}, int64_t{1} << 30));
  command->add_flag("--no-calibration", options->plain,
                    "int4: round every weight on its own, without a text");
  command->add_option("--threads", options->threads, "int4: threads; default: all cores")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--force", options->force, "replace the model in a directory that exists");
  command->footer("Example: ./lattice convert --model runs/book-lattice_dec-1 --to int8 --out book-int8");
  command->callback([options, &chosen] { chosen = [options] { return Convert(*options); }; });
}

}  // namespace lattice::cli
