#include "foreign/llama.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "io/json.h"
#include "model/keys.h"

namespace lattice::foreign {
namespace {

using nlohmann::json;

struct Names {
  std::string_view ours, hugging_face, gguf;
};
constexpr Names kWhole[] = {{"embed.weight", "model.embed_tokens.weight", "token_embd.weight"},
                            {"final_norm.weight", "model.norm.weight", "output_norm.weight"},
                            {"head.weight", "lm_head.weight", "output.weight"}};
// Behind "blocks.<i>.", "model.layers.<i>." and "blk.<i>.".
constexpr Names kInBlock[] = {{"mix_norm.weight", "input_layernorm.weight", "attn_norm.weight"},
                              {"mixer.q.weight", "self_attn.q_proj.weight", "attn_q.weight"},
                              {"mixer.k.weight", "self_attn.k_proj.weight", "attn_k.weight"},
                              {"mixer.v.weight", "self_attn.v_proj.weight", "attn_v.weight"},
                              {"mixer.out.weight", "self_attn.o_proj.weight", "attn_output.weight"},
                              {"ffn_norm.weight", "post_attention_layernorm.weight", "ffn_norm.weight"},
                              {"ffn.gate.weight", "mlp.gate_proj.weight", "ffn_gate.weight"},
                              {"ffn.up.weight", "mlp.up_proj.weight", "ffn_up.weight"},
                              {"ffn.down.weight", "mlp.down_proj.weight", "ffn_down.weight"}};

std::string NameOf(std::string_view ours, std::string_view Names::*column, std::string_view layers) {
  for (const Names& names : kWhole) {
    if (names.ours == ours) return std::string(names.*column);
  }
  const size_t number = ours.find('.') + 1, rest = ours.find('.', number) + 1;
  for (const Names& names : kInBlock) {
    if (names.ours == ours.substr(rest))
      return StrCat(layers, ours.substr(number, rest - number), names.*column);
  }
  Fail("[llama] a LLaMA model has no tensor \"", ours, "\"");
}

// Typed access to config.json, in which null stands for a missing key.
class Fields {
 public:
  Fields(const json& object, std::string source) : object_(object), source_(std::move(source)) {
    Check(object_.is_object(), source_, " must be an object");
  }

  const std::string& source() const { return source_; }
  bool Has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }
  const json& At(const char* key) const { return object_.at(key); }

  template <typename T>
  T Get(const char* key) const {
    return io::GetJson<T>(object_, key, source_);
  }
  template <typename T>
  T Get(const char* key, T otherwise) const {
    return Has(key) ? Get<T>(key) : otherwise;
  }

 private:
  const json& object_;
  std::string source_;
};

// rope_parameters of newer versions of transformers has everything; in older ones rope_theta stands beside
// rope_scaling, whose rope_type was once called type.
void ReadRope(const Fields& fields, model::ModelConfig& out) {
  out.rope_theta = fields.Get("rope_theta", 10000.0);
  const char* key = fields.Has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!fields.Has(key)) return;
  const Fields rope(fields.At(key), StrCat(fields.source(), ": ", key));
  out.rope_theta = rope.Get("rope_theta", out.rope_theta);
  const auto type = rope.Get("rope_type", rope.Get("type", std::string("default")));
  if (type == "default") return;
  Check(type == "linear" || type == "llama3", rope.source(), " asks for rotary positions of the type \"",
        type, "\", which are not computed here; known are default, linear and llama3");
  out.rope_type = type == "linear" ? model::RopeType::kLinear : model::RopeType::kLlama3;
  out.rope_factor = rope.Get<double>("factor");
  if (out.rope_type == model::RopeType::kLinear) return;
  out.rope_low = rope.Get<double>("low_freq_factor");
  out.rope_high = rope.Get<double>("high_freq_factor");
  out.rope_context = rope.Get<int64_t>("original_max_position_embeddings");
}

std::string TypeOf(const json& config) {
  if (!config.is_object() || !config.contains("model_type") || !config["model_type"].is_string()) return "";
  return config["model_type"].get<std::string>();
}

}  // namespace

std::string HuggingFaceName(std::string_view ours) {
  return NameOf(ours, &Names::hugging_face, "model.layers.");
}
std::string GgufName(std::string_view ours) { return NameOf(ours, &Names::gguf, "blk."); }

bool IsLlamaConfig(const json& config) {
  const std::string type = TypeOf(config);
  return type == "llama" || type == "mistral";
}

model::ModelConfig ConfigFromLlama(const json& config, const std::string& source) {
  const Fields fields(config, source);
  Check(IsLlamaConfig(config), "[llama] ", source, " describes a model of the type \"", TypeOf(config),
        "\", which is not known here; known are llama and mistral");
  model::ModelConfig out;
  out.mixer = "transformer";
  out.vocab_size = fields.Get<int64_t>("vocab_size");
  out.layers = fields.Get<int64_t>("num_hidden_layers");
  out.width = fields.Get<int64_t>("hidden_size");
  out.heads = fields.Get<int64_t>("num_attention_heads");
  out.kv_heads = fields.Get("num_key_value_heads", out.heads);
  out.hidden = fields.Get<int64_t>("intermediate_size");
  out.norm_eps = fields.Get("rms_norm_eps", 1e-6);
  out.tie_embedding = fields.Get("tie_word_embeddings", false);
  ReadRope(fields, out);
  Check(!fields.Get("attention_bias", false) && !fields.Get("mlp_bias", false), source,
        ": biases are not computed here; use a checkpoint without them");
  const auto activation = fields.Get("hidden_act", std::string("silu"));
  Check(activation == "silu", source, ": hidden_act is \"", activation, "\"; only silu is computed here");
  model::CheckRanges(out);
  model::Validate(out);
  const auto head_dim = fields.Get("head_dim", out.HeadDim());
  Check(head_dim == out.HeadDim(), source, ": head_dim is ", head_dim,
        "; only hidden_size / num_attention_heads = ", out.HeadDim(), " is computed here");
  return out;
}

nlohmann::ordered_json LlamaFromConfig(const model::ModelConfig& config, std::string_view torch_dtype,
                                       int64_t context) {
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    Check(config.KeepsAll(layer), "[llama] a model of ", config.MixerText(),
          " is not a LLaMA model; only transformers can be written as one");
  }
  nlohmann::ordered_json rope = {{"rope_type", "default"}, {"rope_theta", config.rope_theta}};
  if (config.rope_type != model::RopeType::kDefault) {
    rope["rope_type"] = config.rope_type == model::RopeType::kLinear ? "linear" : "llama3";
    rope["factor"] = config.rope_factor;
  }
  if (config.rope_type == model::RopeType::kLlama3) {
    rope["low_freq_factor"] = config.rope_low;
    rope["high_freq_factor"] = config.rope_high;
    rope["original_max_position_embeddings"] = config.rope_context;
  }
  nlohmann::ordered_json out = {{"architectures", {"LlamaForCausalLM"}},
                                {"model_type", "llama"},
                                {"torch_dtype", torch_dtype},
                                {"vocab_size", config.vocab_size},
                                {"hidden_size", config.width},
                                {"intermediate_size", config.Hidden()},
                                {"num_hidden_layers", config.layers},
                                {"num_attention_heads", config.heads},
                                {"num_key_value_heads", config.KvHeads()},
                                {"hidden_act", "silu"},
                                {"max_position_embeddings", context},
                                {"rms_norm_eps", config.norm_eps},
                                {"tie_word_embeddings", config.tie_embedding},
                                {"attention_bias", false},
                                {"mlp_bias", false},
                                {"rope_theta", config.rope_theta},
                                {"rope_parameters", rope}};
  // What versions before rope_parameters read.
  if (config.rope_type != model::RopeType::kDefault) out["rope_scaling"] = rope;
  return out;
}

}  // namespace lattice::foreign
