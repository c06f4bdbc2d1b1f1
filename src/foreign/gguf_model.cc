// Maps the metadata and tensors of a GGUF file to those of our transformer.
#include "foreign/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "foreign/llama.h"
#include "io/safetensors.h"
#include "model/keys.h"
#include "model/rope.h"
#include "model/tensors.h"

namespace lattice::foreign {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRopeFactors = "rope_freqs.weight";

class ConfigReader {
 public:
  explicit ConfigReader(const io::Gguf& file) : file_(file) {}

  model::ModelConfig Read() {
    const auto& architecture = file_.Require<std::string>("general.architecture");
    Check(architecture == "llama", "[gguf] ", file_.source(), " is a model of the architecture \"",
          architecture, "\", which is not known here; known is llama");
    const int64_t* experts = file_.Find<int64_t>("llama.expert_count");
    Check(experts == nullptr || *experts == 0, "[gguf] ", file_.source(), " has ",
          experts == nullptr ? 0 : *experts, " experts; mixtures of experts are not known here");
    config_.mixer = "transformer";
    config_.vocab_size = file_.Get("token_embd.weight").shape[0];
    config_.layers = Number("block_count");
    config_.width = Number("embedding_length");
    config_.hidden = Number("feed_forward_length");
    config_.heads = Number("attention.head_count");
    config_.kv_heads = Number("attention.head_count_kv", config_.heads);
    config_.norm_eps = file_.Require<double>("llama.attention.layer_norm_rms_epsilon");
    config_.tie_embedding = !file_.Has("output.weight");
    if (const double* base = file_.Find<double>("llama.rope.freq_base")) config_.rope_theta = *base;
    RoundToFloat(config_.norm_eps);
    RoundToFloat(config_.rope_theta);
    model::CheckRanges(config_);
    model::Validate(config_);
    for (const char* key : {"rope.dimension_count", "attention.key_length", "attention.value_length"}) {
      const int64_t size = Number(key, config_.HeadDim());
      Check(size == config_.HeadDim(), "[gguf] ", file_.source(), ": llama.", key, " is ", size,
            "; only embedding_length / head_count = ", config_.HeadDim(), " is computed here");
    }
    ReadScaling();
    return config_;
  }

 private:
  int64_t Number(const std::string& key) const { return file_.Require<int64_t>("llama." + key); }
  int64_t Number(const std::string& key, int64_t otherwise) const {
    const int64_t* value = file_.Find<int64_t>("llama." + key);
    return value == nullptr ? otherwise : *value;
  }

  // The file has 1e-5 as the nearest float, 9.99999974e-06; the shortest decimal that is this float is what was meant.
  static void RoundToFloat(double& value) {
    for (int digits = 1; digits <= 9; ++digits) {
      char text[32];
      std::snprintf(text, sizeof(text), "%.*e", digits - 1, value);
      const double shorter = std::strtod(text, nullptr);
      if (static_cast<float>(shorter) == static_cast<float>(value)) {
        value = shorter;
        return;
      }
    }
  }

  void ReadScaling() {
    const std::string* named = file_.Find<std::string>("llama.rope.scaling.type");
    const std::string type = named == nullptr ? "none" : *named;
    Check(type == "none" || type == "linear", "[gguf] ", file_.source(),
          " asks for rotary positions of the type \"", type,
          "\", which are not computed here; known are none, linear and llama3's factors");
    if (type == "linear") {
      config_.rope_type = model::RopeType::kLinear;
      config_.rope_factor = file_.Require<double>("llama.rope.scaling.factor");
      RoundToFloat(config_.rope_factor);
    }
    if (file_.Has(kRopeFactors)) ReadFactors(file_.Get(kRopeFactors));
    model::CheckRanges(config_);
    model::Validate(config_);
  }

  // llama3's scaling is stored as the factor by which every pair of features turns more slowly. The parameters that
  // give these factors are looked for, and there must be some.
  void ReadFactors(const io::GgufTensor& tensor) {
    const int64_t pairs = config_.HeadDim() / 2;
    Check(tensor.elements() == pairs && config_.rope_type == model::RopeType::kDefault, "[gguf] ",
          file_.source(), ": ", kRopeFactors, " has ", tensor.elements(), " factors; expected ", pairs,
          " and no other scaling");
    std::vector<float> factors(static_cast<size_t>(pairs));
    io::Dequantize(tensor.type, tensor.bytes, factors);
    const std::vector<double> plain = model::RopeRates(config_, pairs);
    float most = 1;
    for (const float factor : factors) most = std::max(most, factor);
    if (most == 1) return;
    config_.rope_type = model::RopeType::kLlama3;
    config_.rope_factor = most;
    for (int64_t context = 16; context <= 1 << 20; context *= 2) {
      config_.rope_context = context;
      const std::vector<double> rates = model::RopeRates(config_, pairs);
      bool equal = true;
      for (size_t i = 0; i < factors.size(); ++i)
        equal = equal && std::abs(plain[i] / rates[i] - factors[i]) <= 1e-4 * factors[i];
      if (equal) return;
    }
    Fail("[gguf] ", file_.source(), ": the factors of ", kRopeFactors,
         " are not those of llama3's rotary positions, the only ones that are computed here");
  }

  const io::Gguf& file_;
  model::ModelConfig config_;
};

// llama.cpp turns neighbouring features, and we, as Hugging Face, those that are half a head apart. Its files have the
// rows of q and k in another order for that: row 2 i + s of a head is our row i + s D/2.
void ReorderRows(std::span<float> values, int64_t head_dim, int64_t cols) {
  const auto rows = static_cast<size_t>(head_dim), width = static_cast<size_t>(cols);
  std::vector<float> head(rows * width);
  for (size_t at = 0; at < values.size(); at += head.size()) {
    std::copy_n(values.data() + at, head.size(), head.data());
    for (size_t row = 0; row < rows; ++row) {
      const size_t to = row / 2 + row % 2 * (rows / 2);
      std::copy_n(head.data() + row * width, width, values.data() + at + to * width);
    }
  }
}

template <typename T>
T Or(const T* value, T otherwise) {
  return value == nullptr ? otherwise : *value;
}

}  // namespace

model::ModelConfig ConfigFromGguf(const io::Gguf& file) { return ConfigReader(file).Read(); }

ForeignModel OpenGguf(const fs::path& path) {
  const auto file = std::make_shared<io::Gguf>(path);
  ForeignModel out;
  out.config = ConfigFromGguf(*file);
  out.format = "gguf";
  out.architecture = file->Require<std::string>("general.architecture");
  out.name = Or(file->Find<std::string>("general.name"), std::string());
  out.license = Or(file->Find<std::string>("general.license"), std::string());
  out.context = std::max<int64_t>(0, Or(file->Find<int64_t>("llama.context_length"), int64_t{0}));
  out.files = LicenseFiles(path.parent_path());
  // A byte-level BPE has it in tokenizer_config.json; a SentencePiece model has no such file.
  const std::string chat = GgufChatTemplate(*file);
  if (!chat.empty() && Or(file->Find<std::string>("tokenizer.ggml.model"), std::string()) == "llama")
    out.files.push_back({"chat_template.jinja", chat});
  std::vector<std::string> types, names;
  for (const auto& [name, tensor] : file->tensors()) {
    types.emplace_back(io::InfoOf(tensor.type).name);
    if (name != kRopeFactors) names.push_back(name);
  }
  CheckAllUsed(out.config, names, GgufName, path.string());
  out.weights = CountTypes(types);
  const int64_t head_dim = out.config.HeadDim();
  out.fill = [file, head_dim](const model::TensorInfo& info, std::span<float> values) {
    const io::GgufTensor& tensor = file->Get(GgufName(info.name));
    Check(tensor.shape == info.shape, "[gguf] ", file->source(), ": the tensor \"", tensor.name,
          "\" has the shape ", io::ShapeText(tensor.shape), "; expected ", io::ShapeText(info.shape));
    io::Dequantize(tensor.type, tensor.bytes, values);
    if (info.name.ends_with("mixer.q.weight") || info.name.ends_with("mixer.k.weight"))
      ReorderRows(values, head_dim, info.shape[1]);
  };
  return out;
}

}  // namespace lattice::foreign
