// Runs the recurrence of one layer for all sessions of a pass, with the heads of all sessions shared out
// among the threads.
#include "runtime/recurrence.h"

#include <algorithm>
#include <vector>

namespace lattice::runtime {

void RunRecurrence(const LayerSteps& steps, const LayerLayout& layout, std::span<const SessionRows> segments,
                   ThreadPool& threads, WorkStealingLoop& work_loop) {
  std::vector<kernels::Sequence> sequences;
  std::vector<kernels::ForwardProblem<float>> problems;
  sequences.reserve(segments.size());
  for (const SessionRows& segment : segments) {
    float* memory = segment.state->fixed.data() + layout.offset + layout.memory;
    if (segment.observer != nullptr) {
      steps.RunObserved(segment.first, segment.count, segment.token, memory, threads, *segment.observer);
      continue;
    }
    sequences.push_back({0, 0, segment.count, 0});
    problems.push_back(steps.ProblemOf(segment.first, memory, &sequences.back()));
  }
  const auto run = steps.rule->forward();
  const int64_t heads = steps.rule->heads, cells = static_cast<int64_t>(problems.size()) * heads;
  // How many heads a thread takes at a time. A head of a decode step is little work, so several are taken at
  // once to save synchronisation. A head of a prompt is so much work that taking several would leave the
  // other threads idle at the end.
  constexpr int64_t kManyTokens = 32;
  const bool prompt = !segments.empty() && segments[0].count > kManyTokens;
  const int64_t piece = prompt ? 1 : std::clamp<int64_t>(cells / (2 * threads.threads()), 1, 6);
  work_loop.For(threads, (cells + piece - 1) / piece, [&](int64_t taken) {
    int64_t first = taken * piece;
    const int64_t last = std::min(cells, first + piece);
    while (first < last) {
      const int64_t problem = first / heads, end = std::min(last, (problem + 1) * heads);
      run(problems[static_cast<size_t>(problem)], first - problem * heads, end - problem * heads);
      first = end;
    }
  });
}

}  // namespace lattice::runtime
