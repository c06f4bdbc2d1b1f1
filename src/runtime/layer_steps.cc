#include "runtime/layer_steps.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/step_meter.h"

namespace lattice::runtime {
namespace {

kernels::View<const float> Rows(const float* data, int64_t row, int64_t width, int64_t head) {
  if (data == nullptr) return {};
  return {data + row * width, 0, width, head};
}

}  // namespace

kernels::ForwardProblem<float> LayerSteps::ProblemOf(int64_t row, float* memory,
                                                     const kernels::Sequence* sequence) const {
  kernels::ForwardProblem<float> p;
  p.heads = rule->heads;
  p.slots = rule->slots;
  p.width = rule->width;
  p.state_size = rule->state_size;
  p.sequences = sequence;
  p.count = 1;
  p.normalize = rule->normalize;
  p.q = Rows(q, row, p.heads * p.slots, p.slots);
  p.k = Rows(k, row, p.heads * p.slots, p.slots);
  p.v = Rows(v, row, p.heads * p.width, p.width);
  p.gamma = Rows(gamma, row, p.heads, 1);
  p.mu = rule->slot_mu() ? Rows(mu, row, p.heads * p.slots, p.slots) : Rows(mu, row, p.heads, 1);
  p.igate = Rows(igate, row, p.heads, 1);
  p.fgate = Rows(fgate, row, p.heads, 1);
  if (rule->lam > 0) p.lam = {&rule->lam, 0, 0, 0};
  p.state = memory;
  p.state_out = memory;
  p.y = {y + row * p.heads * p.width, 0, p.heads * p.width, p.width};
  return p;
}

void LayerSteps::RunObserved(int64_t row, int64_t count, int64_t token, float* memory, ThreadPool& threads,
                             StepObserver& observer) const {
  const int64_t heads = rule->heads, size = rule->state_size;
  const auto run = rule->forward();
  const kernels::Sequence one = {0, 0, 1, 0};
  std::vector<float> before(static_cast<size_t>(heads * size));
  std::vector<StepMeter> meters(static_cast<size_t>(heads), StepMeter(*rule));
  for (int64_t t = 0; t < count; ++t) {
    std::copy_n(memory, heads * size, before.begin());
    const kernels::ForwardProblem<float> problem = ProblemOf(row + t, memory, &one);
    const auto step_of = [&](int64_t head) {
      MemoryStep step = StepOf(row + t, head, before.data() + head * size, memory + head * size);
      step.token = token + t;
      return step;
    };
    threads.For(heads, 1, [&](int64_t first, int64_t last) {
      run(problem, first, last);
      for (int64_t head = first; head < last; ++head)
        meters[static_cast<size_t>(head)].Measure(step_of(head));
    });
    for (int64_t head = 0; head < heads; ++head)
      observer.Observe(step_of(head), meters[static_cast<size_t>(head)].figures());
  }
}

MemoryStep LayerSteps::StepOf(int64_t row, int64_t head, const float* before, const float* after) const {
  const auto slots = static_cast<size_t>(rule->slots), width = static_cast<size_t>(rule->width);
  const auto cell = static_cast<size_t>(row * rule->heads + head);
  MemoryStep step;
  step.layer = layer;
  step.head = head;
  step.q = {q + cell * slots, slots};
  step.k = {k + cell * slots, slots};
  step.v = {v + cell * width, width};
  const float* write_gate = gamma != nullptr ? gamma : igate;
  if (write_gate != nullptr) step.gamma = write_gate[cell];
  if (fgate != nullptr) step.mu = fgate[cell];
  if (mu != nullptr && rule->slot_mu()) {
    const float* gates = mu + cell * slots;
    step.mu = static_cast<float>(std::accumulate(gates, gates + slots, 0.0) / static_cast<double>(slots));
  } else if (mu != nullptr) {
    step.mu = mu[cell];
  }
  step.before = {before, slots * width};
  step.after = {after, slots * width};
  return step;
}

}  // namespace lattice::runtime
