// Tensors as the kernels see them, and the distribution of cells over threads.
#ifndef LATTICE_OPS_KERNEL_VIEWS_H_
#define LATTICE_OPS_KERNEL_VIEWS_H_

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/problem.h"
#include "ops/inputs.h"

namespace lattice {

template <typename T>
kernels::View<const T> ViewOf(const at::Tensor& x) {
  return {x.const_data_ptr<T>(), x.stride(0), x.stride(1), x.stride(2)};
}
template <typename T>
kernels::View<const T> ViewOf(const OptionalTensor& x) {
  return x.has_value() ? ViewOf<T>(*x) : kernels::View<const T>{};
}
template <typename T>
kernels::View<T> MutableView(const at::Tensor& x) {
  if (x.dim() < 3) return {};
  return {x.mutable_data_ptr<T>(), x.stride(0), x.stride(1), x.stride(2)};
}

// Kernels want the last of four dimensions contiguous; other strides are free.
inline at::Tensor RowsContiguous(const at::Tensor& x) {
  return x.dim() == 4 && x.stride(3) != 1 ? x.contiguous() : x;
}
inline OptionalTensor RowsContiguous(const OptionalTensor& x) {
  return x.has_value() ? OptionalTensor(RowsContiguous(*x)) : x;
}

// Fills the sizes and inputs of a problem. The tensors must outlive it.
template <typename T>
void FillProblem(const kernels::Memory& memory, const Inputs& in,
                 const std::vector<kernels::Sequence>& sequences, kernels::Problem<T>& p) {
  p.heads = in.q.size(2);
  p.slots = in.q.size(3);
  p.width = in.v.size(3);
  p.state_size = memory.StateSize(p.slots, p.width);
  p.sequences = sequences.data();
  p.count = static_cast<int64_t>(sequences.size());
  p.q = ViewOf<T>(in.q);
  p.k = ViewOf<T>(in.k);
  p.v = ViewOf<T>(in.v);
  for (size_t i = 0; i < in.gates.size(); ++i) p.gates[i] = ViewOf<T>(in.gates[i]);
  p.state = in.state.const_data_ptr<T>();
}

// Inputs as the kernels can read them.
inline Inputs ForKernels(Inputs in) {
  in.q = RowsContiguous(in.q);
  in.k = RowsContiguous(in.k);
  in.v = RowsContiguous(in.v);
  for (OptionalTensor& gate : in.gates) gate = RowsContiguous(gate);
  in.state = in.state.contiguous();
  return in;
}

// The sequences of a call. saved(length) is a pair: how many checkpoints the forward pass saves of a
// sequence, and for how many tokens it saves activations.
template <class Saved>
std::vector<kernels::Sequence> SequencesOf(const kernels::Memory& memory, const Inputs& in,
                                           const Saved& saved) {
  const int64_t B = in.q.size(0), T = in.q.size(1);
  std::vector<kernels::Sequence> sequences;
  int64_t checkpoint = 0, saved_token = 0;
  const auto add = [&](int64_t batch, int64_t begin, int64_t length) {
    sequences.push_back({batch, begin, length, checkpoint, saved_token});
    const auto [checkpoints, tokens] = saved(length);
    checkpoint += checkpoints;
    saved_token += tokens;
  };
  if (in.cu_seqlens.has_value()) {
    const std::vector<int64_t> at = SequenceStarts(OperatorName(memory), *in.cu_seqlens, T);
    for (size_t n = 0; n + 1 < at.size(); ++n) add(0, at[n], at[n + 1] - at[n]);
  } else {
    for (int64_t b = 0; b < B; ++b) add(b, 0, T);
  }
  return sequences;
}

// Hands out runs of cells to the threads as they become free. Neighbouring cells are heads of one token and
// share pages, so a run is as long as an even share allows, but short enough that a slow core does not hold
// up the rest.
template <class Run>
void OverCells(int64_t cells, const Run& run) {
  const int64_t threads = std::min<int64_t>(at::get_num_threads(), cells);
  const int64_t chunk = std::max<int64_t>(1, cells / (2 * threads));
  std::atomic<int64_t> next{0};
  at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
    for (int64_t first = next.fetch_add(chunk); first < cells; first = next.fetch_add(chunk)) {
      run(first, std::min(cells, first + chunk));
    }
  });
}

}  // namespace lattice

#endif  // LATTICE_OPS_KERNEL_VIEWS_H_
