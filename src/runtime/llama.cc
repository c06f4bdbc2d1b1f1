// Maps the config and the tensor names of a Hugging Face LLaMA checkpoint to those of our transformer, and
// expands grouped-query attention by repeating keys and values.
#include "runtime/llama.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "model/checkpoint.h"

namespace lattice::runtime {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndex = "model.safetensors.index.json";

json ReadConfig(const fs::path& directory) { return io::ReadJson(directory / model::kConfigFile); }

std::string TypeOf(const json& config) {
  const auto type = config.is_object() ? config.find("model_type") : config.end();
  return config.is_object() && type != config.end() && type->is_string() ? type->get<std::string>() : "";
}

int64_t KeyHeads(const json& config) {
  return config.value("num_key_value_heads", config.at("num_attention_heads").get<int64_t>());
}

// The name that Hugging Face gives to our tensor `ours`.
std::string HuggingFaceName(const std::string& ours) {
  static const std::map<std::string, std::string> kWhole = {{"embed.weight", "model.embed_tokens.weight"},
                                                            {"final_norm.weight", "model.norm.weight"},
                                                            {"head.weight", "lm_head.weight"}};
  static const std::map<std::string, std::string> kInBlock = {
      {"mix_norm.weight", "input_layernorm.weight"},   {"mixer.q.weight", "self_attn.q_proj.weight"},
      {"mixer.k.weight", "self_attn.k_proj.weight"},   {"mixer.v.weight", "self_attn.v_proj.weight"},
      {"mixer.out.weight", "self_attn.o_proj.weight"}, {"ffn_norm.weight", "post_attention_layernorm.weight"},
      {"ffn.gate.weight", "mlp.gate_proj.weight"},     {"ffn.up.weight", "mlp.up_proj.weight"},
      {"ffn.down.weight", "mlp.down_proj.weight"}};
  if (const auto found = kWhole.find(ours); found != kWhole.end()) return found->second;
  const size_t number = ours.find('.') + 1, rest = ours.find('.', number) + 1;
  return "model.layers." + ours.substr(number, rest - number) + kInBlock.at(ours.substr(rest));
}

// The tensors of all files of a checkpoint.
class LlamaFiles {
 public:
  explicit LlamaFiles(const fs::path& directory) : directory_(directory) {
    if (!fs::exists(directory / kIndex)) {
      Open(std::string(model::kWeightsFile));
      return;
    }
    const json index = io::ReadJson(directory / kIndex);
    for (const auto& [name, file] : index.at("weight_map").items()) Open(file.get<std::string>());
  }

  const io::TensorView& Get(const std::string& name) const {
    for (const auto& [file, tensors] : files_) {
      if (tensors.Has(name)) return tensors.Get(name);
    }
    Fail("[llama] ", directory_.string(), ": the tensor \"", name,
         "\" is missing; is the download complete?");
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

}  // namespace

bool IsLlama(const fs::path& directory) {
  if (!fs::exists(directory / model::kConfigFile)) return false;
  const std::string type = TypeOf(ReadConfig(directory));
  return type == "llama" || type == "mistral";
}

model::ModelConfig LlamaConfig(const fs::path& directory) {
  const json config = ReadConfig(directory);
  const std::string source = (directory / model::kConfigFile).string();
  const auto number = [&](const char* key) { return io::GetJson<int64_t>(config, key, source); };
  model::ModelConfig out;
  out.mixer = "transformer";
  out.vocab_size = number("vocab_size");
  out.layers = number("num_hidden_layers");
  out.width = number("hidden_size");
  out.heads = number("num_attention_heads");
  out.hidden = number("intermediate_size");
  out.norm_eps = config.value("rms_norm_eps", 1e-6);
  out.rope_theta = config.value("rope_theta", 10000.0);
  out.tie_embedding = config.value("tie_word_embeddings", false);
  Check(!config.contains("rope_scaling") || config["rope_scaling"].is_null(), source,
        ": rope_scaling is not computed here; use a checkpoint without it");
  Check(!config.value("attention_bias", false) && !config.value("mlp_bias", false), source,
        ": biases are not computed here; use a checkpoint without them");
  Check(config.value("hidden_act", std::string("silu")) == "silu", source, ": hidden_act must be silu");
  Check(!config.contains("head_dim") || config["head_dim"].is_null() || config["head_dim"] == out.HeadDim(),
        source, ": head_dim must be hidden_size / num_attention_heads");
  const int64_t shared = KeyHeads(config);
  Check(shared > 0 && out.heads % shared == 0, source,
        ": num_key_value_heads must divide num_attention_heads");
  model::Validate(out);
  return out;
}

std::shared_ptr<const Model> LoadLlama(const fs::path& directory, WeightFormat format) {
  const model::ModelConfig config = LlamaConfig(directory);
  const int64_t repeat = config.heads / KeyHeads(ReadConfig(directory));
  const LlamaFiles files(directory);
  return Model::Make(
      config,
      [&](const model::TensorInfo& info, std::span<float> out) {
        const bool shared = info.name.ends_with("mixer.k.weight") || info.name.ends_with("mixer.v.weight");
        const int64_t times = shared ? repeat : 1;
        const io::TensorView& tensor = files.Get(HuggingFaceName(info.name));
        std::vector<int64_t> expected = info.shape;
        expected[0] /= times;
        Check(tensor.shape == expected, "[llama] ", directory.string(), ": the tensor \"", tensor.name,
              "\" has the shape ", io::ShapeText(tensor.shape), "; expected ", io::ShapeText(expected));
        std::vector<float> values(out.size() / static_cast<size_t>(times));
        WidenTensor(tensor, values.data());
        const auto block = static_cast<size_t>(config.HeadDim() * config.width);
        for (size_t at = 0; at < out.size(); ++at)
          out[at] = times == 1 ? values[at]
                               : values[at / (block * static_cast<size_t>(times)) * block + at % block];
      },
      format);
}

}  // namespace lattice::runtime
