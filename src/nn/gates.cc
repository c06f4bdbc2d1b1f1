#include "nn/gates.h"

#include <ATen/ATen.h>

namespace lattice::nn {

using kernels::GateForm;

at::Tensor Gates::Projection::operator()(const at::Tensor& u) const { return at::linear(u, weight, bias); }

Gates::Gates(const model::ModelConfig& config, const kernels::MemoryInfo& memory, const Lookup& parameter)
    : memory_(memory), heads_(config.heads), slots_(config.Slots()) {
  for (const kernels::GateInfo& info : memory.gates) {
    Gate& gate = gates_.emplace_back();
    if (info.form == GateForm::kNone) continue;
    const bool low = info.form == GateForm::kSlotSigmoid;
    const std::string name = "mixer." + info.name, last = low ? name + "_up" : name;
    gate.projection = {parameter(last + ".weight"), parameter(last + ".bias")};
    if (low) gate.down = parameter(name + "_down.weight");
    if (info.form == GateForm::kDecay) gate.log_decay = parameter("mixer.log_decay");
    if (info.form == GateForm::kSigmoid) sigmoids_.push_back(gates_.size() - 1);
  }
}

at::Tensor Gates::Make(size_t place, const at::Tensor& u, at::Tensor& step) const {
  const Gate& gate = gates_[place];
  switch (memory_.gates[place].form) {
    case GateForm::kNone:
      break;
    case GateForm::kSigmoid:
      return at::sigmoid(gate.projection(u));
    case GateForm::kLinear:
      return gate.projection(u);
    case GateForm::kDecay:
      step = at::softplus(gate.projection(u));
      return at::exp(-at::exp(gate.log_decay) * step);
    case GateForm::kSlotSigmoid: {
      // sigmoid^(1/16) by its logarithm: no infinite slope where the sigmoid underflows.
      const at::Tensor x = gate.projection(at::linear(u, gate.down));
      const at::Tensor value = at::exp(at::log_sigmoid(x) * kernels::kSlotGatePower);
      return value.view({u.size(0), u.size(1), heads_, slots_});
    }
  }
  return {};
}

void Gates::MakeSigmoids(const at::Tensor& u, GateValues& out) const {
  std::vector<at::Tensor> weights, biases;
  for (const size_t place : sigmoids_) {
    weights.push_back(gates_[place].projection.weight);
    biases.push_back(gates_[place].projection.bias);
  }
  const at::Tensor all = at::sigmoid(at::linear(u, at::cat(weights), at::cat(biases)));
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
