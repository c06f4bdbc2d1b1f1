// Reads and writes the directories of LlamaForCausalLM: tensors in one safetensors file or in several with an index.
#include "foreign/hugging_face.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "foreign/llama.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "model/checkpoint.h"
#include "model/tensors.h"
#include "text/bpe.h"
#include "text/hub.h"
#include "text/sentencepiece.h"

namespace lattice::foreign {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndex = "model.safetensors.index.json";
// What a directory may have beside weights and tokenizer that belongs to the model.
constexpr const char* kKeptFiles[] = {"chat_template.jinja", "generation_config.json"};
constexpr size_t kMaxKeptBytes = size_t{1} << 20;

json ReadConfig(const fs::path& directory) { return io::ReadJson(directory / model::kConfigFile); }

// The tensors of all files of a checkpoint.
class Files {
 public:
  explicit Files(const fs::path& directory) : directory_(directory) {
    if (!fs::exists(directory / kIndex)) {
      Open(std::string(model::kWeightsFile));
      return;
    }
    const std::string source = (directory / kIndex).string();
    const json index = io::ReadJson(directory / kIndex);
    const bool listed = index.is_object() && index.contains("weight_map") && index["weight_map"].is_object();
    Check(listed, "[llama] ", source, " must have an object \"weight_map\"");
    for (const auto& [name, file] : index["weight_map"].items()) {
      Check(file.is_string(), "[llama] ", source, ": the file of \"", name, "\" must be a name");
      Open(file.get<std::string>());
    }
  }

  const io::TensorView& Get(const std::string& name) const {
    for (const auto& [file, tensors] : files_) {
      if (tensors.Has(name)) return tensors.Get(name);
    }
    Fail("[llama] ", directory_.string(), ": the tensor \"", name,
         "\" is missing; is the download complete?");
  }

  // Calls each(view) for all tensors.
  template <typename Each>
  void ForAll(const Each& each) const {
    for (const auto& [file, tensors] : files_) {
      for (const auto& [name, view] : tensors.tensors()) each(view);
    }
  }

 private:
  void Open(const std::string& file) {
    Check(fs::path(file).filename() == file, "[llama] ", (directory_ / kIndex).string(), " names the file \"",
          file, "\", which is not in its own directory");
    if (!files_.contains(file)) files_.emplace(file, io::Safetensors(directory_ / file));
  }

  fs::path directory_;
  std::map<std::string, io::Safetensors> files_;
};

// Tensors that old versions wrote and nobody reads, and a head that is the embedding again.
bool IsIdle(const std::string& name, const model::ModelConfig& config) {
  return name.ends_with("rotary_emb.inv_freq") || (config.tie_embedding && name == "lm_head.weight");
}

// The value of `license:` in the head of a README.md; empty when there is none.
std::string LicenseOfReadme(const fs::path& directory) {
  const fs::path path = directory / "README.md";
  if (!fs::is_regular_file(path)) return "";
  const std::string text = io::ReadFile(path, size_t{16} << 20);
  if (!text.starts_with("---\n")) return "";
  const std::string head = text.substr(0, text.find("\n---", 3));
  const size_t at = head.find("\nlicense:");
  if (at == std::string::npos) return "";
  const std::string line = head.substr(at + 9, head.find('\n', at + 1) - at - 9);
  const size_t first = line.find_first_not_of(" \t\"'"), last = line.find_last_not_of(" \t\"'\r");
  return first == std::string::npos ? "" : line.substr(first, last - first + 1);
}

std::vector<text::TokenizerFile> KeptFiles(const fs::path& directory) {
  std::vector<text::TokenizerFile> files = LicenseFiles(directory);
  for (const char* name : kKeptFiles) {
    if (fs::is_regular_file(directory / name))
      files.push_back({name, io::ReadFile(directory / name, kMaxKeptBytes)});
  }
  return files;
}

}  // namespace

bool IsLlama(const fs::path& directory) {
  return fs::exists(directory / model::kConfigFile) && IsLlamaConfig(ReadConfig(directory));
}

model::ModelConfig LlamaConfig(const fs::path& directory) {
  return ConfigFromLlama(ReadConfig(directory), (directory / model::kConfigFile).string());
}

ForeignModel OpenHuggingFace(const fs::path& directory) {
  ForeignModel out;
  const json config = ReadConfig(directory);
  out.config = LlamaConfig(directory);
  out.format = "safetensors";
  out.architecture = config["model_type"].get<std::string>();
  out.license = LicenseOfReadme(directory);
  const json context = config.value("max_position_embeddings", json());
  if (context.is_number_integer() && context > 0) out.context = context.get<int64_t>();
  out.files = KeptFiles(directory);
  const auto files = std::make_shared<Files>(directory);
  std::vector<std::string> types, names;
  files->ForAll([&](const io::TensorView& view) {
    types.emplace_back(io::Name(view.dtype));
    if (!IsIdle(view.name, out.config)) names.push_back(view.name);
  });
  CheckAllUsed(out.config, names, HuggingFaceName, directory.string());
  out.weights = CountTypes(types);
  out.fill = [files, directory](const model::TensorInfo& info, std::span<float> values) {
    const io::TensorView& tensor = files->Get(HuggingFaceName(info.name));
    Check(tensor.shape == info.shape, "[llama] ", directory.string(), ": the tensor \"", tensor.name,
          "\" has the shape ", io::ShapeText(tensor.shape), "; expected ", io::ShapeText(info.shape));
    runtime::WidenTensor(tensor, values.data());
  };
  return out;
}

std::unique_ptr<text::Tokenizer> OpenHuggingFaceTokenizer(const fs::path& directory) {
  const bool ours = fs::exists(directory / text::kTokenizerFile);
  if (!ours && fs::exists(directory / text::kSentencePieceFile)) {
    // Its class in transformers puts bos in front of texts unless it is told not to.
    auto tokenizer = text::LoadSentencePiece(directory / text::kSentencePieceFile);
    const fs::path config = directory / text::kHubTokenizerConfigFile;
    const json said = fs::exists(config) ? io::ReadJson(config) : json::object();
    const bool told =
        said.is_object() && said.contains("add_bos_token") && said["add_bos_token"].is_boolean();
    tokenizer->SetStartsTexts(!told || said["add_bos_token"].get<bool>());
    return tokenizer;
  }
  if (!ours && fs::exists(directory / text::kHubTokenizerFile))
    return text::LoadTokenizerJson(directory / text::kHubTokenizerFile);
  return text::OpenTokenizer(directory.string());
}

void WriteHuggingFace(const model::ModelConfig& config, const runtime::Weights& weights, int64_t context,
                      const fs::path& directory) {
  const bool wide = weights.format() == runtime::WeightFormat::kF32;
  Check(wide || weights.format() == runtime::WeightFormat::kBf16, "[llama] ", runtime::Name(weights.format()),
        " weights cannot be written for other programs; convert from float32 or bf16");
  const nlohmann::ordered_json described = LlamaFromConfig(config, wide ? "float32" : "bfloat16", context);
  io::MakeDirectories(directory);
  runtime::WriteWeights(config, weights, directory / model::kWeightsFile, HuggingFaceName);
  io::WriteFileAtomic(directory / model::kConfigFile, described.dump(2) + "\n");
}

}  // namespace lattice::foreign
