#include "runtime/recurrence.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/memory_view.h"

namespace lattice::runtime {
namespace {

kernels::View<const float> Rows(const float* data, int64_t row, int64_t width, int64_t head) {
  if (data == nullptr) return {};
  return {data + row * width, 0, width, head};
}

double Mean(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum / static_cast<double>(n);
}

}  // namespace

float* Recurrence::Memory(const Segment& segment) const {
  const StateLayout& layout = model->layout;
  return segment.state->fixed.data() + layer * layout.layer_size + layout.memory;
}

kernels::ForwardProblem<float> Recurrence::ProblemOf(int64_t row, float* state,
                                                     const kernels::Sequence* sequence) const {
  const model::ModelConfig& config = model->config;
  kernels::ForwardProblem<float> p;
  p.heads = config.heads;
  p.slots = config.Slots();
  p.width = config.HeadDim();
  p.state_size = model->layout.head_size;
  p.sequences = sequence;
  p.count = 1;
  p.normalize =
      config.normalize == model::Normalize::kNone ? kernels::Normalize::kNone : kernels::Normalize::kToken;
  const bool slot_mu = model->mixer->forget_gate == model::ForgetGate::kSlots;
  p.q = Rows(q, row, p.heads * p.slots, p.slots);
  p.k = Rows(k, row, p.heads * p.slots, p.slots);
  p.v = Rows(v, row, p.heads * p.width, p.width);
  p.gamma = Rows(gamma, row, p.heads, 1);
  p.mu = slot_mu ? Rows(mu, row, p.heads * p.slots, p.slots) : Rows(mu, row, p.heads, 1);
  p.igate = Rows(igate, row, p.heads, 1);
  p.fgate = Rows(fgate, row, p.heads, 1);
  if (model->lam > 0) p.lam = {&model->lam, 0, 0, 0};
  p.state = state;
  p.state_out = state;
  p.y = {y + row * p.heads * p.width, 0, p.heads * p.width, p.width};
  return p;
}

void Recurrence::Run(std::span<const Segment> segments, ThreadPool& threads, Stretches& stretches) const {
  std::vector<kernels::Sequence> sequences;
  std::vector<kernels::ForwardProblem<float>> problems;
  sequences.reserve(segments.size());
  for (const Segment& segment : segments) {
    if (segment.trace != nullptr || segment.observer != nullptr) {
      RunTraced(segment, threads);
      continue;
    }
    sequences.push_back({0, 0, segment.count, 0});
    problems.push_back(ProblemOf(segment.first, Memory(segment), &sequences.back()));
  }
  const auto run =
      model->lam > 0 ? model->rule->shrink_kernels.forward_f32 : model->rule->kernels.forward_f32;
  const int64_t heads = model->config.heads, cells = static_cast<int64_t>(problems.size()) * heads;
  // Heads of a step are little work each. Those of a prompt are so much that one more or less is felt at the
  // end.
  constexpr int64_t kManyTokens = 32;
  const bool prompt = !segments.empty() && segments[0].count > kManyTokens;
  const int64_t piece = prompt ? 1 : std::clamp<int64_t>(cells / (2 * threads.threads()), 1, 6);
  stretches.For(threads, (cells + piece - 1) / piece, [&](int64_t taken) {
    int64_t first = taken * piece;
    const int64_t last = std::min(cells, first + piece);
    while (first < last) {
      const int64_t problem = first / heads, end = std::min(last, (problem + 1) * heads);
      run(problems[static_cast<size_t>(problem)], first - problem * heads, end - problem * heads);
      first = end;
    }
  });
}

void Recurrence::RunTraced(const Segment& segment, ThreadPool& threads) const {
  const int64_t heads = model->config.heads, size = model->layout.head_size;
  const auto run =
      model->lam > 0 ? model->rule->shrink_kernels.forward_f32 : model->rule->kernels.forward_f32;
  const kernels::Sequence one = {0, 0, 1, 0};
  float* state = Memory(segment);
  std::vector<float> before(static_cast<size_t>(heads * size));
  for (int64_t t = 0; t < segment.count; ++t) {
    std::copy_n(state, heads * size, before.begin());
    const kernels::ForwardProblem<float> problem = ProblemOf(segment.first + t, state, &one);
    threads.For(heads, 1, [&](int64_t first, int64_t last) { run(problem, first, last); });
    for (int64_t head = 0; head < heads; ++head) {
      const float *old = &before[static_cast<size_t>(head * size)], *now = state + head * size;
      const HeadTrace measured = Measure(segment.first + t, head, old, now);
      if (segment.trace != nullptr)
        segment.trace[(t * model->config.layers + layer) * heads + head] = measured;
      if (segment.observer != nullptr)
        segment.observer->Observe(StepOf(segment, t, head, measured, old, now));
    }
  }
}

MemoryStep Recurrence::StepOf(const Segment& segment, int64_t t, int64_t head, const HeadTrace& measured,
                              const float* before, const float* after) const {
  const auto slots = static_cast<size_t>(model->config.Slots()),
             width = static_cast<size_t>(model->config.HeadDim());
  const auto cell = static_cast<size_t>((segment.first + t) * model->config.heads + head);
  MemoryStep step{segment.token + t, layer, head, {}, {}, {}, measured.gamma, measured.mu, {}, {}};
  step.q = {q + cell * slots, slots};
  step.k = {k + cell * slots, slots};
  step.v = {v + cell * width, width};
  step.before = {before, slots * width};
  step.after = {after, slots * width};
  return step;
}

HeadTrace Recurrence::Measure(int64_t row, int64_t head, const float* before, const float* after) const {
  const int64_t heads = model->config.heads, slots = model->config.Slots(), width = model->config.HeadDim();
  const float* key = k + (row * heads + head) * slots;
  const float* value = v + (row * heads + head) * width;
  const auto cells = static_cast<size_t>(slots * width);
  double product = 0, read_square = 0, value_square = 0;
  for (int64_t d = 0; d < width; ++d) {
    double read = 0;
    for (int64_t m = 0; m < slots; ++m) read += double{key[m]} * before[m * width + d];
    product += read * value[d];
    read_square += read * read;
    value_square += double{value[d]} * value[d];
  }
  HeadTrace trace;
  trace.write = static_cast<float>(RelativeChange({before, cells}, {after, cells}));
  const double lengths = std::sqrt(read_square * value_square);
  trace.novelty = static_cast<float>(lengths > 0 ? 1 - product / lengths : 1);
  const float* write_gate = gamma != nullptr ? gamma : igate;
  trace.gamma = write_gate != nullptr ? write_gate[row * heads + head] : 1;
  trace.mu = 1;
  if (fgate != nullptr) trace.mu = fgate[row * heads + head];
  if (mu != nullptr) {
    const bool slot_mu = model->mixer->forget_gate == model::ForgetGate::kSlots;
    trace.mu =
        slot_mu ? static_cast<float>(Mean(mu + (row * heads + head) * slots, slots)) : mu[row * heads + head];
  }
  return trace;
}

}  // namespace lattice::runtime
