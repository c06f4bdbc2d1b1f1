// The sequences that a short convolution runs over, and their tiles over the threads.
#ifndef LATTICE_OPS_CONV_TILES_H_
#define LATTICE_OPS_CONV_TILES_H_

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "ops/inputs.h"

namespace lattice {

// `batch` sequences of `time` tokens each, from row `row` of x as a matrix [B*T, C] on; the inputs before the first
// of them are those of sequence `sequence`.
struct SequenceGroup {
  int64_t batch, time, row, sequence;
};

// One group for an even batch; one for each sequence that is not empty of a packed batch, where convolutions start anew.
inline std::vector<SequenceGroup> SequenceGroups(const char* op, const at::Tensor& x,
                                                 const OptionalTensor& cu_seqlens) {
  if (!cu_seqlens.has_value()) return {{x.size(0), x.size(1), 0, 0}};
  const std::vector<int64_t> starts = SequenceStarts(op, *cu_seqlens, x.size(1));
  std::vector<SequenceGroup> groups;
  for (size_t n = 0; n + 1 < starts.size(); ++n) {
    if (starts[n] < starts[n + 1])
      groups.push_back({1, starts[n + 1] - starts[n], starts[n], static_cast<int64_t>(n)});
  }
  return groups;
}

template <class Problem>
int64_t TilesOf(const std::vector<Problem>& problems) {
  int64_t tiles = 0;
  for (const Problem& p : problems) tiles += p.Tiles();
  return tiles;
}

// run(i, before, first, last) for the tiles [first, last) of problem i, `before` being the tiles of those before it.
template <class Problem, class Run>
void OverTiles(const std::vector<Problem>& problems, const Run& run) {
  std::vector<int64_t> starts = {0};
  for (const Problem& p : problems) starts.push_back(starts.back() + p.Tiles());
  at::parallel_for(0, starts.back(), 1, [&](int64_t first, int64_t last) {
    auto i = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), first) - starts.begin() - 1);
    for (; first < last; first = starts[++i]) {
      run(i, starts[i], first - starts[i], std::min(last, starts[i + 1]) - starts[i]);
    }
  });
}

// Throws c10::Error unless x is [B,T,C], the weight [C,W], the bias [C], and past [B,W-1,C] or, of packed sequences,
// [N,W-1,C] with a batch of 1.
inline void CheckConv(const char* op, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const OptionalTensor& past, const OptionalTensor& cu_seqlens) {
  TORCH_CHECK_VALUE(x.dim() == 3 && weight.dim() == 2 && bias.dim() == 1 &&
                        weight.sym_size(0) == x.sym_size(2) && bias.sym_size(0) == x.sym_size(2),
                    op, " needs x [B,T,C], weight [C,W] and bias [C], got ", x.sym_sizes(), ", ",
                    weight.sym_sizes(), " and ", bias.sym_sizes());
  TORCH_CHECK_VALUE(!cu_seqlens.has_value() || x.sym_size(0) == 1, op,
                    " with cu_seqlens the batch must be 1 (sequences lie one after the other), got ",
                    x.sym_size(0));
  if (!past.has_value()) return;
  const c10::SymInt sequences = cu_seqlens.has_value() ? cu_seqlens->sym_numel() - 1 : x.sym_size(0);
  TORCH_CHECK_VALUE(past->dim() == 3 && past->sym_size(0) == sequences &&
                        past->sym_size(1) == weight.sym_size(1) - 1 && past->sym_size(2) == x.sym_size(2),
                    op, " past must be [", cu_seqlens.has_value() ? "N" : "B", ",W-1,C] = [", sequences, ",",
                    weight.sym_size(1) - 1, ",", x.sym_size(2), "], got ", past->sym_sizes());
}

// Whether gradients are wanted for the inputs before x. The kernels make none, but the convolution of these inputs and
// x together, without its first rows, does.
inline bool WantsPastGradient(const char* op, const OptionalTensor& past, const OptionalTensor& cu_seqlens) {
  const bool wanted = past.has_value() && past->requires_grad() && at::GradMode::is_enabled();
  TORCH_CHECK_VALUE(!wanted || !cu_seqlens.has_value(), op,
                    " has no gradient for the past of packed sequences; pass past.detach()");
  return wanted;
}

}  // namespace lattice

#endif  // LATTICE_OPS_CONV_TILES_H_
