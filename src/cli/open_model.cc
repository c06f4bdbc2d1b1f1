// Opens models for all commands: ours and LLaMA checkpoints, runs and checkpoint directories.
#include "cli/open_model.h"

#include "base/error.h"
#include "foreign/hugging_face.h"
#include "io/safetensors.h"
#include "model/checkpoint.h"
#include "model/tensors.h"
#include "runs/run_directory.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const runtime::Model> LoadWeights(const fs::path& checkpoint,
                                                  std::optional<runtime::WeightFormat> format) {
  if (foreign::IsLlama(checkpoint)) {
    const foreign::ForeignModel model = foreign::OpenHuggingFace(checkpoint);
    return runtime::Model::Make(model.config, model.fill, format.value_or(runtime::WeightFormat::kF32));
  }
  return runtime::Model::Load(checkpoint, format);
}

std::unique_ptr<text::Tokenizer> OpenTokenizerOf(const fs::path& checkpoint, const std::string& spec) {
  if (!spec.empty()) {
    auto tokenizer = text::OpenTokenizer(spec);
    // LLaMA's SentencePiece models go with texts that begin with bos.
    if (foreign::IsLlama(checkpoint) && tokenizer->kind() == "sentencepiece") tokenizer->SetStartsTexts(true);
    return tokenizer;
  }
  try {
    return foreign::IsLlama(checkpoint) ? foreign::OpenForeignTokenizer(checkpoint)
                                        : text::OpenTokenizer(checkpoint.string());
  } catch (const Error& error) {
    Fail("[model] the checkpoint ", checkpoint.string(), " has no tokenizer that can be read (", error.what(),
         "); put the one it was trained with there, or name it where the command has --tokenizer");
  }
}

}  // namespace

OpenedModel OpenModel(const std::string& path, const OpenOptions& options) {
  OpenedModel out;
  out.checkpoint = runs::FindCheckpoint(path);
  out.tokenizer = OpenTokenizerOf(out.checkpoint, options.tokenizer);
  out.foreign = foreign::IsLlama(out.checkpoint);
  out.model = LoadWeights(out.checkpoint, options.format);
  runtime::RequireTokenizer(out.model->config(), *out.tokenizer, out.checkpoint.string());
  return out;
}

std::shared_ptr<const runtime::Model> OpenWeights(const std::string& path,
                                                  std::optional<runtime::WeightFormat> format) {
  return LoadWeights(runs::FindCheckpoint(path), format);
}

model::ModelConfig OpenConfig(const std::string& path) {
  const fs::path checkpoint = runs::FindCheckpoint(path);
  if (foreign::IsLlama(checkpoint)) return foreign::LlamaConfig(checkpoint);
  for (const std::string_view name : {model::kConfigFile, model::kWeightsFile})
    model::VerifyChecksum(checkpoint / name);
  const model::ModelConfig config = model::ReadModelConfig(checkpoint);
  model::CheckWeights(config, io::Safetensors(checkpoint / model::kWeightsFile));
  return config;
}

}  // namespace lattice::cli
