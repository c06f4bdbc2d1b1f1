#include "train/memory_figures.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "model/mixers.h"
#include "nn/probe.h"

namespace lattice::train {
namespace {

constexpr double kEps = 1e-6;

struct StepSums {
  double write = 0, novelty = 0, beta = 0;
};

// The step of docs/recurrence.md on all heads of one sequence, S [H,M,D], adding up what it did.
at::Tensor Step(const at::Tensor& state, const nn::MemoryTrace& trace, int64_t t,
                const model::ModelConfig& config, std::string_view objective, StepSums& sums) {
  const at::Tensor k = trace.k[0][t].to(at::kDouble);                           // [H,M]
  const at::Tensor v = trace.v[0][t].to(at::kDouble);                           // [H,D]
  const at::Tensor gamma = trace.gamma[0][t].to(at::kDouble).view({-1, 1, 1});  // [H,1,1]
  at::Tensor mu = at::ones_like(gamma);
  if (trace.mu.defined()) mu = trace.mu[0][t].to(at::kDouble).view({-1, 1, 1});
  const at::Tensor s = (state.square().sum(-1, true) + kEps * kEps).sqrt();  // [H,M,1]
  const at::Tensor phi = state / s;
  at::Tensor h = v, c = k;
  if (objective == "dec") h = at::matmul(k.unsqueeze(1), phi).squeeze(1) - v;
  if (objective == "sim") h = -v;
  if (objective == "enc") c = at::matmul(phi, v.unsqueeze(-1)).squeeze(-1) - k;
  const at::Tensor a = at::matmul(phi, h.unsqueeze(-1));  // [H,M,1]
  const at::Tensor across = h.unsqueeze(1) - a * phi;     // [H,M,D]
  const at::Tensor delta = c.unsqueeze(-1) / s * across;
  const at::Tensor next = mu * state - gamma * delta;
  at::Tensor beta = at::ones_like(s);
  if (config.normalize != model::Normalize::kNone) {
    beta = s / (next.square().sum(-1, true) + kEps * kEps).sqrt();
  }
  sums.write += (gamma * delta.norm(2, -1, true) / s).mean().item<double>();
  sums.novelty += (across.norm(2, -1) / (h.norm(2, -1, true) + kEps)).mean().item<double>();
  sums.beta += beta.mean().item<double>();
  return beta * next;
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

void AddLayer(MemoryFigures& figures, const nn::MemoryTrace& trace, const model::ModelConfig& config) {
  const std::string_view objective = model::FindMixer(config.mixer).objective;
  at::Tensor state = trace.final_state[0].to(at::kDouble);
  if (!objective.empty()) {
    StepSums sums;
    const int64_t length = trace.k.size(1);
    at::Tensor running = trace.initial[0].to(at::kDouble);
    for (int64_t t = 0; t < length; ++t) running = Step(running, trace, t, config, objective, sums);
    figures["write_intensity"].push_back(sums.write / static_cast<double>(length));
    figures["novelty"].push_back(sums.novelty / static_cast<double>(length));
    figures["beta"].push_back(sums.beta / static_cast<double>(length));
  }
  if (state.dim() != 3) return;
  figures["slot_similarity"].push_back(SlotSimilarity(state));
  figures["effective_rank"].push_back(EffectiveRank(state));
}

}  // namespace

MemoryFigures MeasureMemory(const nn::LanguageModel& model, const at::Tensor& tokens) {
  c10::NoGradGuard no_grad;
  std::vector<nn::MemoryTrace> traces;
  {
    const nn::ProbeScope probe(traces);
    model.Forward(tokens);
  }
  MemoryFigures figures;
  for (const nn::MemoryTrace& trace : traces) AddLayer(figures, trace, model.config());
  return figures;
}

}  // namespace lattice::train
