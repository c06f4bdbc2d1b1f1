// Schemas, autograd and shapes.
#include "ops/chunk_scan.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <string>
#include <vector>

#include "kernels/registry.h"
#include "ops/chunk_kernels.h"
#include "ops/chunk_matrix.h"
#include "ops/gradient.h"
#include "ops/operator.h"

namespace lattice {

kernels::Objective ParseObjective(const std::string& word) {
  const auto objective = kernels::ObjectiveNamed(word);
  TORCH_CHECK_VALUE(objective.has_value(), "[scan] objective is '", word,
                    "'; the choices are 'dec', 'enc' and 'sim'");
  return *objective;
}

ChunkForm::ChunkForm(const std::string& objective_word, const std::string& normalize_word,
                     const std::string& method, int64_t chunk_tokens, int64_t sweep_count,
                     std::optional<double> sweep_tolerance)
    : objective(ParseObjective(objective_word)),
      linear1(method == "linear1"),
      chunk(chunk_tokens),
      sweeps(sweep_count),
      tolerance(sweep_tolerance) {
  TORCH_CHECK_VALUE(linear1 || method == "linear2", "[scan] method is '", method,
                    "'; the choices are 'exact', 'linear1' and 'linear2'");
  const auto kind = kernels::NormalizeNamed(normalize_word);
  TORCH_CHECK_VALUE(kind.has_value(), "[scan] normalize is '", normalize_word, "'; the choices of ", method,
                    " are 'token', 'chunk' and 'none'");
  normalize = *kind;
  TORCH_CHECK_VALUE(chunk >= 1, "[scan] chunk is ", chunk, "; it must be at least 1 token");
  TORCH_CHECK_VALUE(sweeps >= 1, "[scan] sweeps is ", sweeps,
                    "; it must be at least 1 (1 is linear2 itself)");
  TORCH_CHECK_VALUE(!Refined() || !linear1, "[scan] sweeps refine linear2, got method '", method,
                    "' with sweeps ", sweeps, "; use method 'linear2' or sweeps 1");
  TORCH_CHECK_VALUE(!tolerance.has_value() || *tolerance > 0, "[scan] tolerance is ", tolerance.value_or(0),
                    "; it must be greater than 0");
}

namespace {

using at::Tensor;
using Strings = const std::string&;

// Every operator below begins with these: the form, then the tensors.
#define LATTICE_CHUNK_PARAMETERS                                                          \
  Strings objective, Strings normalize, Strings method, int64_t chunk, int64_t sweeps,    \
      std::optional<double> tolerance, const Tensor &q, const Tensor &k, const Tensor &v, \
      const Tensor &gamma, const OptionalTensor &mu, const Tensor &state, const OptionalTensor &cu_seqlens
#define LATTICE_CHUNK_ARGUMENTS \
  objective, normalize, method, chunk, sweeps, tolerance, q, k, v, gamma, mu, state, cu_seqlens
#define LATTICE_CHUNK_FORM ChunkForm(objective, normalize, method, chunk, sweeps, tolerance)
#define LATTICE_CHUNK_INPUTS \
  Inputs { q, k, v, {gamma, mu, std::nullopt}, state, cu_seqlens }
#define LATTICE_CHUNK_SCHEMA                                                                                \
  "str objective, str normalize, str method, int chunk, int sweeps, float? tolerance, Tensor q, Tensor k, " \
  "Tensor v, Tensor gamma, Tensor? mu, Tensor state, Tensor? cu_seqlens"

using ChunkResult = std::tuple<Tensor, Tensor, Tensor>;
using ChunkGrads = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using ScanSignature = std::tuple<Tensor, Tensor>(LATTICE_CHUNK_PARAMETERS);
using ChunkForwardSignature = ChunkResult(LATTICE_CHUNK_PARAMETERS, bool, bool);
using ChunkBackwardSignature = ChunkGrads(LATTICE_CHUNK_PARAMETERS, const Tensor&, const Tensor&,
                                          const OptionalTensor&);

// Whether the CPU kernels compute this form of tensors on that device; all else are products of matrices.
bool UsesKernels(const ChunkForm& form, const at::Device& device) {
  return !form.Refined() && (device.is_cpu() || device.is_meta());
}

// The operator is told who computes: to its shape function fake tensors of every device are meta tensors, and
// the kernels keep other states than the products of matrices.
ChunkResult CallChunkForward(LATTICE_CHUNK_PARAMETERS, bool keep) {
  static const auto op = Operator<ChunkForwardSignature>("lattice::_chunk_forward");
  return op.call(LATTICE_CHUNK_ARGUMENTS, UsesKernels(LATTICE_CHUNK_FORM, q.device()), keep);
}

Tensor OrUndefined(const OptionalTensor& x) { return x.has_value() ? *x : Tensor(); }

ChunkGrads CallChunkBackward(LATTICE_CHUNK_PARAMETERS, const Tensor& checkpoints, const Tensor& dy,
                             const OptionalTensor& dstate_out) {
  static const auto op = Operator<ChunkBackwardSignature>("lattice::_chunk_backward");
  return op.call(LATTICE_CHUNK_ARGUMENTS, checkpoints, dy, dstate_out);
}

std::tuple<Tensor, Tensor> ScanAutograd(LATTICE_CHUNK_PARAMETERS) {
  const variable_list inputs = (LATTICE_CHUNK_INPUTS).Differentiable();
  RequireNoTangents("[scan]", inputs);
  const bool keep = WantsGradient(inputs);
  const auto [y, state_out, checkpoints] = [&] {
    at::AutoDispatchBelowADInplaceOrView below;
    return CallChunkForward(LATTICE_CHUNK_ARGUMENTS, keep);
  }();
  if (!keep) return {y, state_out};
  const auto backward = [objective = objective, normalize = normalize, method = method, chunk, sweeps,
                         tolerance](const variable_list& x, const variable_list& grads) -> variable_list {
    const Tensor &v_in = x[2], &state_in = x[3];
    const Tensor dy = grads[0].defined() ? grads[0] : at::zeros_symint(v_in.sym_sizes(), state_in.options());
    const auto [dq, dk, dv, dgamma, dmu, dstate] =
        CallChunkBackward(objective, normalize, method, chunk, sweeps, tolerance, x[0], x[1], v_in, x[4],
                          IfDefined(x[5]), state_in, IfDefined(x[7]), x[8], dy, IfDefined(grads[1]));
    return {dq, dk, dv, dstate, dgamma, x[5].defined() ? dmu : Tensor(), Tensor()};
  };
  variable_list saved = inputs;
  saved.insert(saved.end(), {OrUndefined(cu_seqlens), checkpoints});
  RecordGradient("LatticeChunkScanBackward", inputs, {y, state_out}, saved, backward);
  return {y, state_out};
}

ChunkGrads BackwardAutograd(LATTICE_CHUNK_PARAMETERS, const Tensor& checkpoints, const Tensor& dy,
                            const OptionalTensor& dstate_out) {
  const ChunkGrads grads = [&] {
    at::AutoDispatchBelowADInplaceOrView below;
    return CallChunkBackward(LATTICE_CHUNK_ARGUMENTS, checkpoints, dy, dstate_out);
  }();
  variable_list inputs = (LATTICE_CHUNK_INPUTS).Differentiable();
  inputs.insert(inputs.end(), {dy, OrUndefined(dstate_out)});
  if (WantsGradient(inputs)) {
    const auto& [dq, dk, dv, dgamma, dmu, dstate] = grads;
    RefuseGradient("[scan]", inputs, {dq, dk, dv, dgamma, dmu, dstate});
  }
  return grads;
}

std::tuple<Tensor, Tensor> ScanForward(LATTICE_CHUNK_PARAMETERS) {
  auto [y, state_out, checkpoints] = CallChunkForward(LATTICE_CHUNK_ARGUMENTS, /*keep=*/false);
  return {y, state_out};
}

const kernels::Memory& MemoryOf(const ChunkForm& form) { return kernels::FindMemory(form.objective); }

void CheckOneType(const Inputs& in) {
  for (const Tensor& x : in.Differentiable()) {
    TORCH_CHECK_TYPE(!x.defined() || x.scalar_type() == in.state.scalar_type(),
                     "[scan] the chunk forms take one type for all tensors; call lattice.scan");
  }
}

c10::SymInt StatesKept(const ChunkForm& form, const Inputs& in, bool kernels) {
  const auto count = kernels ? &ChunkKernelsCheckpoints : &ChunkMatrixCheckpoints;
  return count(form, in.q.sym_size(0), in.q.sym_size(1), in.cu_seqlens.has_value());
}

ChunkResult ChunkForward(LATTICE_CHUNK_PARAMETERS, bool kernels, bool keep) {
  const ChunkForm form = LATTICE_CHUNK_FORM;
  const Inputs in = LATTICE_CHUNK_INPUTS;
  CheckShapes(MemoryOf(form), in);
  CheckOneType(in);
  CheckStart(MemoryOf(form), in);
  TORCH_CHECK_VALUE(kernels == UsesKernels(form, q.device()), "[scan] kernels is ", kernels,
                    ", which does not fit the form and the device ", q.device(), "; call lattice.scan");
  if (kernels) return ChunkKernelsForward(form, in, keep);
  at::NoGradGuard off;
  return ChunkMatrixForward(form, in, keep);
}

// The chunks are recomputed with autograd on, which the dispatcher may have switched off for this operator.
std::vector<Tensor> MatrixBackward(const ChunkForm& form, const Inputs& in, const Tensor& checkpoints,
                                   const Tensor& dy, const OptionalTensor& dstate_out) {
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  c10::impl::ForceDispatchKeyGuard allow(keys.included_,
                                         keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  return ChunkMatrixBackward(form, in, checkpoints, dy, dstate_out);
}

ChunkGrads ChunkBackward(LATTICE_CHUNK_PARAMETERS, const Tensor& checkpoints, const Tensor& dy,
                         const OptionalTensor& dstate_out) {
  const ChunkForm form = LATTICE_CHUNK_FORM;
  const Inputs in = LATTICE_CHUNK_INPUTS;
  std::vector<Tensor> d = UsesKernels(form, q.device())
                              ? ChunkKernelsBackward(form, in, checkpoints, dy, dstate_out)
                              : MatrixBackward(form, in, checkpoints, dy, dstate_out);
  if (!d[4].defined()) d[4] = at::empty({0}, state.options());
  return {d[0], d[1], d[2], d[3], d[4], d[5]};
}

ChunkResult MetaForward(LATTICE_CHUNK_PARAMETERS, bool kernels, bool keep) {
  const ChunkForm form = LATTICE_CHUNK_FORM;
  const Inputs in = LATTICE_CHUNK_INPUTS;
  CheckShapes(MemoryOf(form), in);
  std::vector<c10::SymInt> sizes = state.sym_sizes().vec();
  sizes[0] = keep ? StatesKept(form, in, kernels) : c10::SymInt(0);
  return {at::empty_symint(v.sym_sizes(), state.options()),
          at::empty_symint(state.sym_sizes(), state.options()), at::empty_symint(sizes, state.options())};
}

ChunkGrads MetaBackward(LATTICE_CHUNK_PARAMETERS, const Tensor&, const Tensor&, const OptionalTensor&) {
  const auto like = [&](const Tensor& x) { return at::empty_symint(x.sym_sizes(), state.options()); };
  (void)LATTICE_CHUNK_FORM;
  (void)cu_seqlens;
  return {
      like(q),    like(k), like(v), like(gamma), mu.has_value() ? like(*mu) : at::empty({0}, state.options()),
      like(state)};
}

}  // namespace

std::tuple<Tensor, Tensor> ChunkScan(const ChunkForm& form, const Inputs& in) {
  TORCH_CHECK_VALUE(!in.gates[kernels::kLamGate].has_value(), "[scan] lam was given, but ", form.Method(),
                    " has no shrinkage; use method 'exact' or leave lam out");
  CheckTypes(MemoryOf(form), in);
  static const auto op = Operator<ScanSignature>("lattice::_chunk_scan");
  const Inputs x = in.Widened();
  auto [y, state] = op.call(std::string(Name(form.objective)), std::string(Name(form.normalize)),
                            form.Method(), form.chunk, form.sweeps, form.tolerance, x.q, x.k, x.v,
                            *x.gates[kernels::kGammaGate], x.gates[kernels::kMuGate], x.state, x.cu_seqlens);
  return {y.to(in.q.scalar_type()), state};
}

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("_chunk_scan(" LATTICE_CHUNK_SCHEMA ") -> (Tensor y, Tensor state_out)");
  m.def("_chunk_forward(" LATTICE_CHUNK_SCHEMA
        ", bool kernels, bool keep) -> (Tensor y, Tensor state_out, Tensor checkpoints)");
  m.def("_chunk_backward(" LATTICE_CHUNK_SCHEMA
        ", Tensor checkpoints, Tensor dy, Tensor? dstate_out) -> "
        "(Tensor dq, Tensor dk, Tensor dv, Tensor dgamma, Tensor dmu, Tensor dstate)");
  m.def("_chunk_matrix(" LATTICE_CHUNK_SCHEMA ") -> (Tensor y, Tensor state_out)",
        [](LATTICE_CHUNK_PARAMETERS) {
          CheckShapes(MemoryOf(LATTICE_CHUNK_FORM), LATTICE_CHUNK_INPUTS);
          auto [y, out, checkpoints] =
              ChunkMatrixForward(LATTICE_CHUNK_FORM, LATTICE_CHUNK_INPUTS, /*keep=*/false);
          return std::tuple(y, out);
        });
}

TORCH_LIBRARY_IMPL(lattice, CompositeExplicitAutograd, m) {
  m.impl("_chunk_scan", ScanForward);
  m.impl("_chunk_forward", ChunkForward);
  m.impl("_chunk_backward", ChunkBackward);
}
TORCH_LIBRARY_IMPL(lattice, Autograd, m) {
  m.impl("_chunk_scan", ScanAutograd);
  m.impl("_chunk_backward", BackwardAutograd);
}
TORCH_LIBRARY_IMPL(lattice, Meta, m) {
  m.impl("_chunk_forward", MetaForward);
  m.impl("_chunk_backward", MetaBackward);
}

}  // namespace lattice
