#include "nn/recurrence.h"

#include <ATen/ATen.h>

#include "nn/probe.h"
#include "ops/recurrence.h"

namespace lattice::nn {
namespace {

using kernels::GateRole;

const char* MethodName(model::Method method) {
  return method == model::Method::kLinear1   ? "linear1"
         : method == model::Method::kLinear2 ? "linear2"
                                             : "exact";
}

}  // namespace

Recurrence::Recurrence(const model::ModelConfig& config, const kernels::Memory& memory,
                       const Lookup& parameter)
    : config_(config), memory_(memory) {
  if (memory_.learned_state) state0_ = parameter("mixer.state0");
}

std::optional<at::Tensor> Recurrence::InitialState(int64_t batch, const BlockState* state) const {
  if (state != nullptr && state->memory.defined()) return state->memory;
  if (!memory_.learned_state) return std::nullopt;
  return state0_.unsqueeze(0).expand({batch, -1, -1, -1});
}

std::vector<std::optional<at::Tensor>> Recurrence::WithShrinkage(std::vector<std::optional<at::Tensor>> gates,
                                                                 const at::Tensor& q) const {
  const int place = memory_.FindGate(GateRole::kShrink);
  if (place >= 0 && config_.lam > 0) {
    gates[static_cast<size_t>(place)] =
        at::full({}, config_.lam, q.options()).expand({q.size(0), q.size(1), q.size(2)});
  }
  return gates;
}

at::Tensor Recurrence::operator()(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const GateValues& gates, BlockState* state) const {
  const std::optional<at::Tensor> initial = InitialState(q.size(0), state);
  std::tuple<at::Tensor, at::Tensor> result;
  const auto gate = [&](GateRole role) {
    const int place = memory_.FindGate(role);
    return place < 0 ? std::optional<at::Tensor>() : gates.gates[static_cast<size_t>(place)];
  };
  if (memory_.objective.has_value()) {
    ScanOptions options;
    options.objective = kernels::Name(*memory_.objective);
    options.normalize = kernels::Name(config_.normalize);
    options.method = MethodName(config_.method);
    options.chunk = config_.chunk;
    options.sweeps = config_.sweeps;
    options.mu = gate(GateRole::kForget);
    const at::Tensor gamma = gate(GateRole::kWrite).value();
    if (config_.lam > 0) options.lam = at::full({}, config_.lam, q.options()).expand(gamma.sizes());
    result = Scan(q, k, v, gamma, *initial, options);
  } else {
    const at::Tensor written = memory_.step_scales_values ? v * gates.step.unsqueeze(-1) : v;
    result = RecurWith(memory_, q, k, written, WithShrinkage(gates.gates, q), initial);
  }
  if (state != nullptr) state->memory = state->Left(std::get<1>(result));
  if (std::vector<MemoryInputs>* traces = ProbeScope::active()) {
    const auto tensor = [](const std::optional<at::Tensor>& x) { return x.value_or(at::Tensor()); };
    traces->push_back({k, v, tensor(gate(GateRole::kWrite)), tensor(gate(GateRole::kForget)), tensor(initial),
                       std::get<1>(result), std::get<0>(result)});
  }
  return std::get<0>(result);
}

}  // namespace lattice::nn
