#include "nn/gates.h"

#include <ATen/ATen.h>

#include "model/tensors.h"
#include "ops/gates.h"

namespace lattice::nn {

using kernels::GateForm;

at::Tensor Gates::Projection::operator()(const at::Tensor& u) const { return at::linear(u, weight, bias); }

Gates::Gates(const model::ModelConfig& config, const kernels::MemoryInfo& memory, const Lookup& parameter)
    : memory_(memory), heads_(config.heads) {
  for (const kernels::GateInfo& info : memory.gates) {
    Gate& gate = gates_.emplace_back();
    if (info.form == GateForm::kNone) continue;
    const std::vector<std::string> layers = model::GateLayers(info);
    const std::string last = "mixer." + layers.back();
    gate.projection = {parameter(last + ".weight"), parameter(last + ".bias")};
    if (layers.size() > 1) gate.down = parameter("mixer." + layers[0] + ".weight");
    if (info.form == GateForm::kDecay) gate.log_decay = parameter("mixer.log_decay");
    if (info.form == GateForm::kSigmoid) sigmoids_.push_back(gates_.size() - 1);
  }
}

at::Tensor Gates::Make(size_t place, const at::Tensor& u, at::Tensor& step) const {
  const Gate& gate = gates_[place];
  const at::Tensor x = gate.down.defined() ? at::linear(u, gate.down) : u;
  const auto log_decay = gate.log_decay.defined() ? std::optional(gate.log_decay) : std::nullopt;
  const GateValue made = MakeGate(memory_.gates[place].form, gate.projection(x), heads_, log_decay);
  if (made.step.defined()) step = made.step;
  return made.value;
}

void Gates::MakeSigmoids(const at::Tensor& u, GateValues& out) const {
  std::vector<at::Tensor> weights, biases;
  for (const size_t place : sigmoids_) {
    weights.push_back(gates_[place].projection.weight);
    biases.push_back(gates_[place].projection.bias);
  }
  const at::Tensor projected = at::linear(u, at::cat(weights), at::cat(biases));
  const at::Tensor all = MakeGate(GateForm::kSigmoid, projected, heads_).value;
  for (size_t i = 0; i < sigmoids_.size(); ++i)
    out.gates[sigmoids_[i]] = all.narrow(-1, static_cast<int64_t>(i) * heads_, heads_);
}

GateValues Gates::Forward(const at::Tensor& u) const {
  GateValues out;
  out.gates.resize(gates_.size());
  if (sigmoids_.size() > 1) MakeSigmoids(u, out);
  for (size_t place = 0; place < gates_.size(); ++place) {
    if (memory_.gates[place].form == GateForm::kNone || out.gates[place].has_value()) continue;
    out.gates[place] = Make(place, u, out.step);
  }
  return out;
}

}  // namespace lattice::nn
