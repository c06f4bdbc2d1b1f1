// Measures the memories of a model on a text: training's forward pass records their inputs, and the runtime
// replays the recurrence and measures every step.
#include "train/memory_figures.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "kernels/registry.h"
#include "nn/probe.h"
#include "runtime/layer_steps.h"

namespace lattice::train {
namespace {

constexpr double kEps = 1e-6;

struct Means : runtime::StepObserver {
  void Observe(const runtime::MemoryStep&, const runtime::StepFigures& figures) override {
    means.Add(figures);
  }
  runtime::FigureMeans means;
};

// Replays the recurrence of the first sequence of the trace, with the runtime measuring every step.
runtime::FigureMeans StepMeans(const nn::MemoryInputs& trace, const runtime::MemoryRule& rule) {
  const auto floats = [](const at::Tensor& x) {
    return x.defined() ? x[0].to(at::kFloat).contiguous() : at::Tensor();
  };
  const auto data = [](const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; };
  const at::Tensor k = floats(trace.k), v = floats(trace.v), gamma = floats(trace.gamma),
                   mu = floats(trace.mu), memory = floats(trace.initial).clone(), y = at::empty_like(v);
  runtime::LayerSteps steps;
  steps.rule = &rule;
  steps.q = steps.k = data(k);  // any query will do: the output is not used
  steps.v = data(v);
  for (const auto& [role, gate] :
       {std::pair{kernels::GateRole::kWrite, gamma}, {kernels::GateRole::kForget, mu}}) {
    const int place = rule.memory->FindGate(role);
    if (place >= 0) steps.gates[place] = data(gate);
  }
  steps.y = y.mutable_data_ptr<float>();
  Means observer;
  ThreadPool threads(1);
  steps.RunObserved(0, k.size(0), 0, memory.mutable_data_ptr<float>(), threads, observer);
  return observer.means;
}

double SlotSimilarity(const at::Tensor& state) {
  const at::Tensor unit = state / (state.norm(2, -1, true) + kEps);
  const auto slots = static_cast<double>(state.size(1));
  if (slots < 2) return 0;
  const at::Tensor cosines = at::matmul(unit, unit.transpose(1, 2)).abs();
  const at::Tensor self = cosines.diagonal(0, 1, 2).sum();
  return (cosines.sum() - self).item<double>() / (static_cast<double>(state.size(0)) * slots * (slots - 1));
}

double EffectiveRank(const at::Tensor& state) {
  const at::Tensor values = at::linalg_svdvals(state);
  const at::Tensor parts = values / (values.sum(-1, true) + kEps);
  const at::Tensor entropy = -(parts * (parts + 1e-30).log()).sum(-1);
  return (entropy.exp() / static_cast<double>(values.size(-1))).mean().item<double>();
}

void AddLayer(MemoryFigures& figures, const nn::MemoryInputs& trace, const runtime::MemoryRule& rule) {
  for (const char* name : {"write", "novelty", "answer", "beta", "slot_similarity", "effective_rank"})
    figures.try_emplace(name);
  if (rule.memory->objective.has_value()) {
    const runtime::FigureMeans means = StepMeans(trace, rule);
    figures["write"].push_back(means.write());
    figures["novelty"].push_back(means.novelty().value());
    figures["answer"].push_back(means.answer());
    figures["beta"].push_back(means.beta().value());
  }
  const at::Tensor state = trace.final_state[0].to(at::kDouble);
  if (state.dim() != 3) return;
  figures["slot_similarity"].push_back(SlotSimilarity(state));
  figures["effective_rank"].push_back(EffectiveRank(state));
}

}  // namespace

MemoryFigures MeasureMemory(const nn::LanguageModel& model, const at::Tensor& tokens) {
  c10::NoGradGuard no_grad;
  std::vector<nn::MemoryInputs> traces;
  {
    const nn::ProbeScope probe(traces);
    model.Forward(tokens);
  }
  MemoryFigures figures;
  size_t trace = 0;
  for (int64_t layer = 0; layer < model.config().layers; ++layer) {
    if (model.config().HasMemory(layer))
      AddLayer(figures, traces[trace++], runtime::MemoryRule(model.config().Layer(layer)));
  }
  return figures;
}

}  // namespace lattice::train
