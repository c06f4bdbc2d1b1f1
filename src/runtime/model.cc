// Loads a model: finds every block's tensors by name and prepares them for the forward pass (convolutions
// transposed, decays exponentiated).
#include "runtime/model.h"

#include <cmath>

#include "base/error.h"
#include "base/functions.h"
#include "model/checkpoint.h"
#include "runtime/model_parts.h"
#include "text/tokenizer.h"

namespace lattice::runtime {
namespace {

// Collects the tensors of one block: those whose names start with "blocks.<layer>.".
class BlockReader {
 public:
  BlockReader(const ModelParts& parts, int64_t layer)
      : parts_(parts), layer_(parts.config.Layer(layer)), prefix_(StrCat("blocks.", layer, ".")) {}

  BlockParts Read() const {
    BlockParts b(layer_);
    b.mix_norm = Vector("mix_norm.weight");
    b.v = Matrix("mixer.v.weight");
    b.out = Matrix("mixer.out.weight");
    if (!b.memory->attention && layer_.block == model::BlockKind::kPaper) {
      ReadMemory(b);
    } else {
      b.q = Matrix("mixer.q.weight");
      b.k = Matrix("mixer.k.weight");
      if (!b.memory->attention) ReadMemoryBeside(b);
    }
    b.ffn_norm = Vector("ffn_norm.weight");
    b.ffn_gate = Matrix("ffn.gate.weight");
    b.ffn_up = Matrix("ffn.up.weight");
    b.ffn_down = Matrix("ffn.down.weight");
    return b;
  }

 private:
  const float* Vector(const std::string& name) const { return parts_.weights.Vector(prefix_ + name).data(); }
  WeightMatrix Matrix(const std::string& name) const { return parts_.weights.Matrix(prefix_ + name); }

  WeightMatrix SmallMatrix(const std::string& name, int64_t cols) const {
    const std::span<const float> values = parts_.weights.Vector(prefix_ + name);
    return {WeightFormat::kF32, static_cast<int64_t>(values.size()) / cols, cols, values.data(), nullptr};
  }
  GateParts Gate(const std::string& name, int64_t cols) const {
    return {SmallMatrix("mixer." + name + ".weight", cols), Vector("mixer." + name + ".bias"), {}, {}};
  }
  ConvParts Conv(const std::string& name) const {
    const int64_t width = parts_.config.conv_width;
    const std::span<const float> values = parts_.weights.Vector(prefix_ + name + ".weight");
    ConvParts conv{std::vector<float>(values.size()), Vector(name + ".bias"),
                   static_cast<int64_t>(values.size()) / width};
    for (int64_t c = 0; c < conv.channels; ++c) {
      for (int64_t j = 0; j < width; ++j)
        conv.weight[static_cast<size_t>(j * conv.channels + c)] = values[static_cast<size_t>(c * width + j)];
    }
    return conv;
  }

  GateParts ReadGate(const kernels::GateInfo& gate) const {
    using kernels::GateForm;
    const int64_t width = parts_.config.width;
    switch (gate.form) {
      case GateForm::kNone:
        break;
      case GateForm::kSigmoid:
      case GateForm::kLinear:
        return Gate(gate.name, width);
      case GateForm::kDecay: {
        GateParts parts = Gate(gate.name, width);
        for (const float log : parts_.weights.Vector(prefix_ + "mixer.log_decay"))
          parts.decay.push_back(static_cast<float>(-Exp(log)));
        return parts;
      }
      case GateForm::kSlotSigmoid: {
        GateParts parts = Gate(gate.name + "_up", kernels::kSlotGateRank);
        parts.down = SmallMatrix("mixer." + gate.name + "_down.weight", width);
        return parts;
      }
    }
    return {};
  }

  void ReadMemoryBeside(BlockParts& b) const {
    for (const kernels::GateInfo& gate : b.memory->gates) b.gates.push_back(ReadGate(gate));
    if (b.memory->learned_state) b.state0 = Vector("mixer.state0");
    b.amplitude = Vector("mixer.amplitude");
    if (layer_.window > 0) b.share = Gate("share", layer_.width);
    if (layer_.output_gate == model::OutputGate::kSigmoid) b.gate = Matrix("mixer.gate.weight");
  }

  void ReadMemory(BlockParts& b) const {
    const kernels::Memory& memory = *b.memory;
    b.pre_norm = Vector("pre_norm.weight");
    b.pre_conv = Conv("pre_conv");
    b.qk = Matrix("mixer.qk.weight");
    b.conv_q = Conv("mixer.conv_q");
    b.conv_k = Conv("mixer.conv_k");
    if (memory.conv_v) b.conv_v = Conv("mixer.conv_v");
    b.gate = Matrix("mixer.gate.weight");
    for (const kernels::GateInfo& gate : memory.gates) b.gates.push_back(ReadGate(gate));
    if (memory.skip) b.skip = Vector("mixer.skip");
    if (memory.learned_state) b.state0 = Vector("mixer.state0");
    b.out_norm_weight = Vector("mixer.out_norm.weight");
    b.out_norm_bias = Vector("mixer.out_norm.bias");
  }

  const ModelParts& parts_;
  const model::ModelConfig layer_;
  std::string prefix_;
};

void CheckComputable(const model::ModelConfig& config) {
  Check(config.method == model::Method::kExact && config.normalize != model::Normalize::kChunk &&
            config.chunk == 1 && config.sweeps == 1,
        "[runtime] the runtime computes the exact recurrence only; this model was made for a chunked form "
        "(model.chunk = ",
        config.chunk, ", model.sweeps = ", config.sweeps,
        "). Set model.method to exact, chunk and sweeps to 1 in its config to run the weights that way");
}

}  // namespace

ModelParts::ModelParts(const model::ModelConfig& model_config, Weights model_weights)
    : config(model_config), weights(std::move(model_weights)), layout(config) {
  embed = weights.Matrix("embed.weight");
  head = weights.Matrix(config.tie_embedding ? "embed.weight" : "head.weight");
  final_norm = weights.Vector("final_norm.weight").data();
  for (int64_t layer = 0; layer < config.layers; ++layer) blocks.push_back(BlockReader(*this, layer).Read());
  for (const BlockParts& block : blocks)
    rotates = rotates || block.memory->attention || block.config.block == model::BlockKind::kAttention;
}

std::shared_ptr<const Model> Model::Load(const std::filesystem::path& checkpoint,
                                         std::optional<WeightFormat> format) {
  model::VerifyChecksum(checkpoint / model::kConfigFile);
  const model::ModelConfig config = model::ReadModelConfig(checkpoint);
  CheckComputable(config);
  return std::shared_ptr<const Model>(new Model(
      std::make_unique<ModelParts>(config, Weights(config, checkpoint / model::kWeightsFile, format))));
}

std::shared_ptr<const Model> Model::Untrained(const model::ModelConfig& config, uint64_t seed,
                                              WeightFormat format) {
  return Make(
      config,
      [seed](const model::TensorInfo& info, std::span<float> out) { model::FillInit(info, seed, out); },
      format);
}

std::shared_ptr<const Model> Model::Make(const model::ModelConfig& config, const TensorSource& fill,
                                         WeightFormat format) {
  CheckComputable(config);
  return std::shared_ptr<const Model>(
      new Model(std::make_unique<ModelParts>(config, Weights(config, fill, format))));
}

Model::Model(std::unique_ptr<const ModelParts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;

const model::ModelConfig& Model::config() const { return parts_->config; }
WeightFormat Model::format() const { return parts_->weights.format(); }
int64_t Model::BytesPerToken() const { return parts_->weights.BytesPerToken(); }
const std::string& Model::hash() const { return parts_->weights.hash(); }

void RequireTokenizer(const model::ModelConfig& config, const text::Tokenizer& tokenizer,
                      std::string_view source) {
  Check(tokenizer.vocab_size() <= config.vocab_size, "[model] the tokenizer of ", source, " has ",
        tokenizer.vocab_size(), " ids but the model knows ", config.vocab_size,
        "; they do not belong together");
}

}  // namespace lattice::runtime
