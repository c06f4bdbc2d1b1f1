// Describes the recurrence of one layer to the kernels, and runs it token by token where an observer wants
// the figures of every step.
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
  const std::vector<kernels::GateInfo>& infos = rule->memory->gates;
  for (size_t i = 0; i < infos.size(); ++i) {
    const int64_t size = infos[i].per_slot ? p.slots : 1;
    p.gates[i] = Rows(gates[i], row, p.heads * size, size);
    if (infos[i].role == kernels::GateRole::kShrink && rule->shrink > 0)
      p.gates[i] = {&rule->shrink, 0, 0, 0};
  }
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

float LayerSteps::GateOf(kernels::GateRole role, size_t cell) const {
  const int place = rule->memory->FindGate(role);
  if (place < 0 || gates[place] == nullptr) return 1;
  if (!rule->memory->gates[static_cast<size_t>(place)].per_slot) return gates[place][cell];
  const auto slots = static_cast<size_t>(rule->slots);
  const float* of_slots = gates[place] + cell * slots;
  return static_cast<float>(std::accumulate(of_slots, of_slots + slots, 0.0) / static_cast<double>(slots));
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
  step.gamma = GateOf(kernels::GateRole::kWrite, cell);
  step.mu = GateOf(kernels::GateRole::kForget, cell);
  step.before = {before, slots * width};
  step.after = {after, slots * width};
  return step;
}

}  // namespace lattice::runtime
