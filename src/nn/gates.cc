#include "nn/gates.h"

#include <ATen/ATen.h>

namespace lattice::nn {

using model::ForgetGate;

at::Tensor Gates::Projection::operator()(const at::Tensor& u) const { return at::linear(u, weight, bias); }

Gates::Gates(const model::ModelConfig& config, const model::MixerInfo& mixer, const Lookup& parameter)
    : mixer_(mixer), heads_(config.heads), slots_(config.Slots()) {
  const auto projection = [&](const std::string& name) {
    return Projection{parameter("mixer." + name + ".weight"), parameter("mixer." + name + ".bias")};
  };
  if (mixer.write_gate) gamma_ = projection("gamma");
  if (mixer.exponential_gates) {
    igate_ = projection("igate");
    fgate_ = projection("fgate");
  }
  switch (mixer.forget_gate) {
    case ForgetGate::kNone:
      break;
    case ForgetGate::kSigmoid:
      mu_ = projection("mu");
      break;
    case ForgetGate::kDecay:
      mu_ = projection("mu");
      log_decay_ = parameter("mixer.log_decay");
      break;
    case ForgetGate::kSlots:
      mu_ = projection("mu_up");
      mu_down_ = parameter("mixer.mu_down.weight");
      break;
  }
}

void Gates::Forget(const at::Tensor& u, GateValues& out) const {
  switch (mixer_.forget_gate) {
    case ForgetGate::kNone:
      break;
    case ForgetGate::kSigmoid:
      out.mu = at::sigmoid(mu_(u));
      break;
    case ForgetGate::kDecay:
      out.step = at::softplus(mu_(u));
      out.mu = at::exp(-at::exp(log_decay_) * out.step);
      break;
    case ForgetGate::kSlots: {
      // sigmoid^(1/16) by its logarithm: no infinite slope where the sigmoid underflows.
      const at::Tensor x = mu_(at::linear(u, mu_down_));
      const at::Tensor mu = at::exp(at::log_sigmoid(x) * model::kSlotGatePower);
      out.mu = mu.view({u.size(0), u.size(1), heads_, slots_});
      break;
    }
  }
}

// gamma and mu of the same form by one product: neither has columns enough for a good one.
GateValues Gates::Both(const at::Tensor& u) const {
  const at::Tensor gates =
      at::sigmoid(at::linear(u, at::cat({gamma_.weight, mu_.weight}), at::cat({gamma_.bias, mu_.bias})));
  GateValues out;
  out.gamma = gates.narrow(-1, 0, heads_);
  out.mu = gates.narrow(-1, heads_, heads_);
  return out;
}

GateValues Gates::Forward(const at::Tensor& u) const {
  if (mixer_.write_gate && mixer_.forget_gate == ForgetGate::kSigmoid && !mixer_.exponential_gates)
    return Both(u);
  GateValues out;
  if (mixer_.write_gate) out.gamma = at::sigmoid(gamma_(u));
  if (mixer_.exponential_gates) {
    out.igate = igate_(u);
    out.fgate = fgate_(u);
  }
  Forget(u, out);
  return out;
}

}  // namespace lattice::nn
