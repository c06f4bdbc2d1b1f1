// The CPU kernels behind lattice::_chunk_forward and lattice::_chunk_backward.
#include <ATen/ATen.h>

#include "kernels/chunk/chunk.h"
#include "kernels/registry.h"
#include "ops/chunk_kernels.h"
#include "ops/kernel_views.h"

namespace lattice {
namespace {

kernels::ChunkRule RuleOf(const ChunkForm& form, int64_t T) {
  kernels::ChunkRule rule;
  rule.objective = form.objective;
  rule.normalize = form.normalize;
  rule.linear1 = form.linear1;
  rule.plan.chunk = std::min(form.chunk, std::max(T, kernels::ChunkPlan::kSegment));
  return rule;
}

// A problem and the tensors that keep its pointers alive.
struct PreparedChunks {
  const kernels::Memory& memory;
  const Inputs in;
  const kernels::ChunkRule rule;
  std::vector<kernels::Sequence> sequences;

  PreparedChunks(const ChunkForm& form, const Inputs& inputs)
      : memory(kernels::FindMemory(form.objective)),
        in(ForKernels(inputs)),
        rule(RuleOf(form, in.q.size(1))) {
    sequences = SequencesOf(memory, in, [&](int64_t length) {
      return std::pair(length > 0 ? rule.plan.Checkpoints(length) : int64_t{0}, int64_t{0});
    });
  }

  template <typename T>
  void Fill(kernels::Problem<T>& p) const {
    FillProblem(memory, in, sequences, p);
  }
};

}  // namespace

c10::SymInt ChunkKernelsCheckpoints(const ChunkForm& form, c10::SymInt B, c10::SymInt T, bool packed) {
  const kernels::ChunkPlan plan{form.chunk};
  return packed ? plan.MaxCheckpoints(T) : B * plan.Checkpoints(T);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> ChunkKernelsForward(const ChunkForm& form, const Inputs& in,
                                                                   bool keep) {
  const auto options = in.state.options();
  at::Tensor y = at::empty(in.v.sizes(), options), state_out = at::empty(in.state.sizes(), options);
  const int64_t rows =
      ChunkKernelsCheckpoints(form, in.q.size(0), in.q.size(1), in.cu_seqlens.has_value()).expect_int();
  auto sizes = in.state.sizes().vec();
  sizes[0] = keep ? rows : 0;
  at::Tensor checkpoints = at::empty(sizes, options);
  const PreparedChunks prepared(form, in);
  AT_DISPATCH_FLOATING_TYPES(in.state.scalar_type(), "lattice_chunk_forward", [&] {
    kernels::ForwardProblem<scalar_t> p;
    prepared.Fill(p);
    p.y = MutableView<scalar_t>(y);
    p.state_out = state_out.mutable_data_ptr<scalar_t>();
    p.checkpoints = keep ? checkpoints.mutable_data_ptr<scalar_t>() : nullptr;
    OverCells(p.Cells(),
              [&](int64_t first, int64_t last) { kernels::ChunkForward(prepared.rule, p, first, last); });
  });
  return {y, state_out, checkpoints};
}

std::vector<at::Tensor> ChunkKernelsBackward(const ChunkForm& form, const Inputs& in,
                                             const at::Tensor& checkpoints, const at::Tensor& dy,
                                             const OptionalTensor& dstate_out) {
  const PreparedChunks prepared(form, in);
  const auto like = [&](const at::Tensor& x) { return at::empty(x.sizes(), in.state.options()); };
  const OptionalTensor& mu = in.gates[kernels::kMuGate];
  std::vector<at::Tensor> grads{like(in.q),
                                like(in.k),
                                like(in.v),
                                like(*in.gates[kernels::kGammaGate]),
                                mu.has_value() ? like(*mu) : at::Tensor(),
                                like(in.state)};
  const at::Tensor dy_rows = RowsContiguous(dy);
  const at::Tensor dstate = dstate_out.has_value() ? dstate_out->contiguous() : at::Tensor();
  AT_DISPATCH_FLOATING_TYPES(in.state.scalar_type(), "lattice_chunk_backward", [&] {
    kernels::BackwardProblem<scalar_t> p;
    prepared.Fill(p);
    p.checkpoints = checkpoints.const_data_ptr<scalar_t>();
    p.dy = ViewOf<scalar_t>(dy_rows);
    p.dstate_out = dstate.defined() ? dstate.const_data_ptr<scalar_t>() : nullptr;
    p.dq = MutableView<scalar_t>(grads[0]);
    p.dk = MutableView<scalar_t>(grads[1]);
    p.dv = MutableView<scalar_t>(grads[2]);
    p.dgates[kernels::kGammaGate] = MutableView<scalar_t>(grads[3]);
    if (grads[4].defined()) p.dgates[kernels::kMuGate] = MutableView<scalar_t>(grads[4]);
    p.dstate = grads[5].mutable_data_ptr<scalar_t>();
    OverCells(p.Cells(),
              [&](int64_t first, int64_t last) { kernels::ChunkBackward(prepared.rule, p, first, last); });
  });
  return grads;
}

}  // namespace lattice
