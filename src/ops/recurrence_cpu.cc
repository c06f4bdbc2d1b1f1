// The CPU kernels behind lattice::_forward and lattice::_backward.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <vector>

#include "ops/kernel_views.h"
#include "ops/recurrence_op.h"
#include "ops/saved_sizes.h"

namespace lattice {
namespace {

// A problem and the tensors that keep its pointers alive.
struct Prepared {
  const kernels::Memory& memory;
  const kernels::Normalize normalize;
  const Inputs in;
  const kernels::KernelSet& kernel_set;
  const SavedSizes sizes;
  std::vector<kernels::Sequence> sequences;

  explicit Prepared(const Call& call)
      : memory(call.memory),
        normalize(kernels::NormalizeNamed(call.how).value_or(kernels::Normalize::kToken)),
        in(ForKernels(call.in)),
        kernel_set(KernelsFor(memory, in)),
        sizes(memory, in, /*with_activations=*/true) {
    const int64_t M = in.q.size(3), D = in.v.size(3);
    const int64_t state_size = memory.StateSize(M, D), saved_size = kernel_set.saved_size.Of(M, D);
    sequences = SequencesOf(memory, in, [&](int64_t length) {
      return std::pair(kernels::CheckpointsOf(length),
                       length - kernels::FirstSavedToken(length, state_size, saved_size));
    });
  }

  template <typename T>
  void Fill(kernels::Problem<T>& p) const {
    FillProblem(memory, in, sequences, p);
    p.normalize = normalize;
  }
};

ForwardResult Forward(LATTICE_RECURRENCE_PARAMETERS, bool keep, bool activations) {
  const Call call = LATTICE_RECURRENCE_CALL;
  TORCH_CHECK_VALUE(activations, OperatorName(call.memory),
                    " the CPU kernels save activations of tokens; pass activations=True, or call lattice.",
                    call.memory.objective.has_value() ? "scan" : "recur");
  CheckShapes(call.memory, call.in);
  CheckStart(call.memory, call.in);
  const Prepared prepared(call);
  at::Tensor y = at::empty(v.sizes(), state.options());
  at::Tensor state_out = at::empty(state.sizes(), state.options());
  at::Tensor saved = at::empty({keep ? prepared.sizes.Total().expect_int() : 0}, state.options());
  AT_DISPATCH_FLOATING_TYPES(state.scalar_type(), "lattice_forward", [&] {
    kernels::ForwardProblem<scalar_t> p;
    prepared.Fill(p);
    p.y = MutableView<scalar_t>(y);
    p.state_out = state_out.mutable_data_ptr<scalar_t>();
    if (keep) {
      p.checkpoints = saved.mutable_data_ptr<scalar_t>();
      p.saved_activations = p.checkpoints + prepared.sizes.checkpoints.expect_int();
    }
    const auto run = prepared.kernel_set.Forward<scalar_t>();
    OverCells(p.Cells(), [&](int64_t first, int64_t last) { run(p, first, last); });
  });
  return {y, state_out, saved};
}

BackwardResult Backward(LATTICE_RECURRENCE_PARAMETERS, const at::Tensor& saved, const at::Tensor& dy,
                        const OptionalTensor& dstate_out) {
  const Prepared prepared(LATTICE_RECURRENCE_CALL);
  TORCH_CHECK_VALUE(saved.numel() == prepared.sizes.Total() && saved.is_contiguous(),
                    OperatorName(prepared.memory),
                    " what the forward pass saved does not belong to these inputs");
  const auto like = [&](const at::Tensor& x) { return at::empty(x.sizes(), state.options()); };
  const at::Tensor dq = like(q), dk = like(k), dv = like(v), dstate = like(state);
  std::vector<at::Tensor> dgates;
  for (const OptionalTensor& gate : prepared.in.gates)
    dgates.push_back(gate.has_value() ? like(*gate) : at::empty({0}, state.options()));
  const at::Tensor dy_rows = RowsContiguous(dy);
  const OptionalTensor dstate_rows =
      dstate_out.has_value() ? OptionalTensor(dstate_out->contiguous()) : dstate_out;
  AT_DISPATCH_FLOATING_TYPES(state.scalar_type(), "lattice_backward", [&] {
    kernels::BackwardProblem<scalar_t> p;
    prepared.Fill(p);
    p.checkpoints = saved.const_data_ptr<scalar_t>();
    p.saved_activations = p.checkpoints + prepared.sizes.checkpoints.expect_int();
    p.dy = ViewOf<scalar_t>(dy_rows);
    p.dstate_out = dstate_rows.has_value() ? dstate_rows->const_data_ptr<scalar_t>() : nullptr;
    p.dq = MutableView<scalar_t>(dq);
    p.dk = MutableView<scalar_t>(dk);
    p.dv = MutableView<scalar_t>(dv);
    for (size_t i = 0; i < dgates.size(); ++i) p.dgates[i] = MutableView<scalar_t>(dgates[i]);
    p.dstate = dstate.mutable_data_ptr<scalar_t>();
    const auto run = prepared.kernel_set.Backward<scalar_t>();
    OverCells(p.Cells(), [&](int64_t first, int64_t last) { run(p, first, last); });
  });
  return {dq, dk, dv, dstate, dgates};
}

}  // namespace

TORCH_LIBRARY_IMPL(lattice, CPU, m) {
  m.impl("_forward", Forward);
  m.impl("_backward", Backward);
}

}  // namespace lattice
