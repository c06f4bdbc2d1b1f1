// Lists every tensor of a model with its shape and initialisation.
#include "model/tensors.h"

#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/registry.h"

namespace lattice::model {
namespace {

constexpr bool kDecay = true, kNoDecay = false;
constexpr Init kZero = {InitKind::kConstant, 0, 0};
constexpr Init kOne = {InitKind::kConstant, 1, 0};
// Mamba-2's initialisation: decay rates in [1, 16), time steps in [0.001, 0.1).
constexpr Init kDecayRates = {InitKind::kLogUniform, 1, 16};
constexpr Init kTimeSteps = {InitKind::kInverseSoftplus, 1e-3, 1e-1};

// Collects the tensors of one model, block by block.
class Builder {
 public:
  explicit Builder(const ModelConfig& config)
      : config_(config), width_(config.width), heads_(config.heads), slots_(config.heads * config.Slots()) {}

  std::vector<TensorInfo> Build() {
    Add("embed.weight", {config_.vocab_size, width_}, Part::kEmbedding, kDecay, Matrix(), Layer::kEmbedding);
    for (int64_t i = 0; i < config_.layers; ++i) {
      prefix_ = StrCat("blocks.", i, ".");
      const ModelConfig layer = config_.Layer(i);
      const kernels::Memory& memory = kernels::FindMemory(layer.mixer);
      if (!memory.attention && layer.block == BlockKind::kPaper) {
        AddMemory(memory);
      } else {
        AddAttention();
        if (!memory.attention) AddMemoryBeside(memory, layer.window > 0);
      }
      AddFeedForward();
    }
    prefix_.clear();
    AddNorm("final_norm.weight");
    if (!config_.tie_embedding)
      Add("head.weight", {config_.vocab_size, width_}, Part::kHead, kDecay, Matrix());
    return std::move(tensors_);
  }

 private:
  Init Matrix() const { return {InitKind::kNormal, config_.init_std, 0}; }
  // Projections into the residual stream are scaled down, so that its variance does not grow with the number
  // of blocks.
  Init Residual() const {
    return {InitKind::kNormal, config_.init_std / std::sqrt(2.0 * static_cast<double>(config_.layers)), 0};
  }
  Init Bias(double value) const { return {InitKind::kConstant, value, 0}; }

  void Add(std::string_view name, std::vector<int64_t> shape, Part part, bool decay, Init init,
           Layer layer = Layer::kLinear) {
    tensors_.push_back({prefix_ + std::string(name), std::move(shape), part, decay, init, layer});
  }

  void AddNorm(std::string_view name, Init init = kOne) {
    Add(name, {width_}, Part::kNorm, kNoDecay, init, Layer::kNorm);
  }

  void AddConv(const std::string& name, int64_t channels, Part part) {
    const double bound = 1 / std::sqrt(static_cast<double>(config_.conv_width));
    Add(name + ".weight", {channels, config_.conv_width}, part, kDecay, {InitKind::kUniform, -bound, bound},
        Layer::kConvolution);
    Add(name + ".bias", {channels}, part, kNoDecay, kZero, Layer::kConvolution);
  }

  Init GateBias(const kernels::GateInfo& gate) const {
    if (gate.form == kernels::GateForm::kDecay) return kTimeSteps;
    if (gate.role == kernels::GateRole::kWrite) return Bias(config_.gamma_bias);
    if (gate.role == kernels::GateRole::kForget) return Bias(config_.mu_bias);
    return Bias(gate.bias);
  }

  void AddGate(const kernels::GateInfo& gate) {
    using kernels::GateForm;
    const std::vector<std::string> layers = GateLayers(gate);
    const auto add = [&](const std::string& name, std::vector<int64_t> shape, Init init) {
      Add("mixer." + name, std::move(shape), Part::kMixer, kNoDecay, init, Layer::kGate);
    };
    switch (gate.form) {
      case GateForm::kNone:
        break;
      case GateForm::kSigmoid:
      case GateForm::kLinear:
      case GateForm::kDecay:
        add(layers[0] + ".weight", {heads_, width_}, Matrix());
        add(layers[0] + ".bias", {heads_}, GateBias(gate));
        break;
      case GateForm::kSlotSigmoid:
        add(layers[0] + ".weight", {kernels::kSlotGateRank, width_}, Matrix());
        add(layers[1] + ".weight", {slots_, kernels::kSlotGateRank}, Matrix());
        add(layers[1] + ".bias", {slots_}, GateBias(gate));
        break;
    }
    if (gate.form == GateForm::kDecay)
      Add("mixer.log_decay", {heads_}, Part::kMixer, kNoDecay, kDecayRates, Layer::kNone);
  }

  Init StateValues(const kernels::Memory& memory) const {
    StateInit kind = config_.state_init;
    if (kind == StateInit::kAuto)
      kind = memory.zeros == kernels::ZeroStart::kValid ? StateInit::kZeros : StateInit::kSphere;
    if (kind == StateInit::kSphere) return {InitKind::kSphere, 0, 0};
    // All features are equal, and LayerNorm removes their mean: with one head, the output is zero until
    // something has been written.
    if (kind == StateInit::kAligned)
      return {InitKind::kConstant, 1 / std::sqrt(static_cast<double>(config_.HeadDim())), 0};
    return kind == StateInit::kNormal ? Matrix() : kZero;
  }

  void AddState(const kernels::Memory& memory) {
    if (!memory.learned_state) return;
    Add("mixer.state0", {heads_, config_.Slots(), config_.HeadDim()}, Part::kMixer, kNoDecay,
        StateValues(memory), Layer::kNone);
  }

  void AddMemory(const kernels::Memory& memory) {
    AddNorm("pre_norm.weight");
    AddConv("pre_conv", width_, Part::kPreConv);
    AddNorm("mix_norm.weight");
    Add("mixer.qk.weight", {slots_, width_}, Part::kMixer, kDecay, Matrix());
    AddConv("mixer.conv_q", slots_, Part::kMixer);
    AddConv("mixer.conv_k", slots_, Part::kMixer);
    Add("mixer.v.weight", {width_, width_}, Part::kMixer, kDecay, Matrix());
    if (memory.conv_v) AddConv("mixer.conv_v", width_, Part::kMixer);
    Add("mixer.gate.weight", {width_, width_}, Part::kMixer, kDecay, Matrix());
    for (const kernels::GateInfo& gate : memory.gates) AddGate(gate);
    if (memory.skip) Add("mixer.skip", {heads_}, Part::kMixer, kNoDecay, kOne, Layer::kNone);
    AddState(memory);
    AddNorm("mixer.out_norm.weight");
    AddNorm("mixer.out_norm.bias", kZero);
    Add("mixer.out.weight", {width_, width_}, Part::kMixer, kDecay, Residual());
  }

  void AddAttention() {
    AddNorm("mix_norm.weight");
    const int64_t shared = config_.KvHeads() * config_.HeadDim();
    Add("mixer.q.weight", {width_, width_}, Part::kMixer, kDecay, Matrix());
    Add("mixer.k.weight", {shared, width_}, Part::kMixer, kDecay, Matrix());
    Add("mixer.v.weight", {shared, width_}, Part::kMixer, kDecay, Matrix());
    Add("mixer.out.weight", {width_, width_}, Part::kMixer, kDecay, Residual());
  }

  // What a memory adds to the projections of attention: its gates and initial state, the amplitude of what is
  // read from it, its share beside a window, and the gate before the output.
  void AddMemoryBeside(const kernels::Memory& memory, bool window) {
    for (const kernels::GateInfo& gate : memory.gates) AddGate(gate);
    AddState(memory);
    Add("mixer.amplitude", {heads_, config_.HeadDim()}, Part::kMixer, kNoDecay, kOne, Layer::kNone);
    if (window) {
      Add("mixer.share.weight", {heads_, width_}, Part::kMixer, kNoDecay, Matrix(), Layer::kGate);
      Add("mixer.share.bias", {heads_}, Part::kMixer, kNoDecay, Bias(config_.share_bias), Layer::kGate);
    }
    if (config_.output_gate == OutputGate::kSigmoid)
      Add("mixer.gate.weight", {width_, width_}, Part::kMixer, kDecay, Matrix());
  }

  void AddFeedForward() {
    const int64_t hidden = config_.Hidden();
    AddNorm("ffn_norm.weight");
    Add("ffn.gate.weight", {hidden, width_}, Part::kFeedForward, kDecay, Matrix());
    Add("ffn.up.weight", {hidden, width_}, Part::kFeedForward, kDecay, Matrix());
    Add("ffn.down.weight", {width_, hidden}, Part::kFeedForward, kDecay, Residual());
  }

  const ModelConfig& config_;
  const int64_t width_;
  const int64_t heads_;
  const int64_t slots_;  // of all heads together
  std::string prefix_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace

std::string_view Name(Part part) {
  switch (part) {
    case Part::kEmbedding:
      return "embedding";
    case Part::kPreConv:
      return "pre-convolution";
    case Part::kMixer:
      return "mixer";
    case Part::kFeedForward:
      return "feed-forward";
    case Part::kNorm:
      return "norms";
    case Part::kHead:
      return "head";
  }
  return "";
}

std::string_view Name(Layer layer) {
  constexpr std::string_view kNames[] = {"embedding", "linear", "gate", "convolution", "norm", "none"};
  return kNames[static_cast<size_t>(layer)];
}

std::string_view Name(InitKind kind) {
  constexpr std::string_view kNames[] = {"constant",    "normal",           "uniform",
                                         "log_uniform", "inverse_softplus", "sphere"};
  return kNames[static_cast<size_t>(kind)];
}

bool TensorInfo::IsMatrix() const { return decay && (layer == Layer::kLinear || layer == Layer::kEmbedding); }

bool TensorInfo::IsProjection() const {
  return IsMatrix() && part != Part::kEmbedding && part != Part::kHead;
}

int64_t TensorInfo::Elements() const {
  const std::optional<int64_t> elements = TryElements(shape);
  Check(elements.has_value(), "[model] tensor ", name, " has more elements than 64 bits can count");
  return *elements;
}

std::vector<std::string> GateLayers(const kernels::GateInfo& gate) {
  switch (gate.form) {
    case kernels::GateForm::kNone:
      return {};
    case kernels::GateForm::kSlotSigmoid:
      return {gate.name + "_down", gate.name + "_up"};
    default:
      return {gate.name};
  }
}

std::vector<TensorInfo> ModelTensors(const ModelConfig& config) {
  Validate(config);
  Check(config.vocab_size > 0,
        "[model] model.vocab_size is 0; set it, or take it from the tokenizer before building the model");
  return Builder(config).Build();
}

ParameterCounts CountParameters(const ModelConfig& config) {
  ParameterCounts counts;
  for (const TensorInfo& tensor : ModelTensors(config)) {
    const bool embedding = tensor.part == Part::kEmbedding || tensor.part == Part::kHead;
    (embedding ? counts.embedding : counts.non_embedding) += tensor.Elements();
  }
  counts.total = CheckedAdd(counts.embedding, counts.non_embedding, "number of parameters");
  return counts;
}

}  // namespace lattice::model
