// Schemas and the public entry points.
//
// A call takes this way: Run checks types and widens them for the CPU; _recurrence (recurrence_autograd.cc) is where
// autograd comes in; _forward (recurrence_cpu.cc, recurrence_meta.cc without data, or of GPUs
// python/lattice/triton/dispatch.py) checks shapes and computes. python/lattice/_vmap.py has the rules of torch.vmap for the three.
#include "ops/recurrence.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "kernels/isa.h"
#include "kernels/registry.h"
#include "ops/chunk_scan.h"
#include "ops/recurrence_op.h"

namespace lattice {
namespace {

using kernels::Memory;
using Result = std::tuple<at::Tensor, at::Tensor>;

// Whether somebody computes the exact recurrence on that device: the CPU kernels, or what Python has registered
// (python/lattice/triton/dispatch.py).
bool HasKernels(const at::Tensor& q) {
  if (HasCpuKernels(q)) return true;
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("lattice::_forward", "");
  return op.hasKernelForDispatchKey(c10::computeDispatchKey(q.scalar_type(), at::kStrided, q.device()));
}

// Checks types and the device, and runs; y has the type of q.
Result Run(const Memory& memory, const std::string& normalize, const Inputs& in) {
  CheckTypes(memory, in);
  TORCH_CHECK_VALUE(HasKernels(in.q), OperatorName(memory), " nobody computes the exact recurrence on ",
                    in.q.device(),
                    "; move the tensors to the CPU, or use a method that is made of matrix products: "
                    "linear2 of scan, chunk of recur");
  static const auto op = Operator<RecurrenceSignature>("lattice::_recurrence");
  const auto [y, state] = Call(memory, normalize, in.ForDevice()).Through(op);
  return {y.to(in.q.scalar_type()), state};
}

Result ScanOp(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& gamma,
              const OptionalTensor& mu, const at::Tensor& state, const OptionalTensor& lam,
              const OptionalTensor& cu_seqlens, const std::string& objective, const std::string& normalize,
              const std::string& method, int64_t chunk, int64_t sweeps, std::optional<double> tolerance) {
  const Memory& memory = kernels::FindMemory(ParseObjective(objective));
  const Inputs in{q,     k,         v, GatesByName(memory, {{"gamma", gamma}, {"mu", mu}, {"lam", lam}}),
                  state, cu_seqlens};
  if (method != "exact") return ChunkScan({objective, normalize, method, chunk, sweeps, tolerance}, in);
  TORCH_CHECK_VALUE(
      chunk == 1 && sweeps == 1 && !tolerance.has_value(),
      "[scan] the exact method has no chunks and no sweeps: chunk and sweeps must be 1, got chunk ", chunk,
      " and sweeps ", sweeps, tolerance.has_value() ? " with a tolerance" : "",
      "; use method 'linear2' for them");
  const auto kind = kernels::NormalizeNamed(normalize);
  TORCH_CHECK_VALUE(kind.has_value() && *kind != kernels::Normalize::kChunk, "[scan] normalize is '",
                    normalize, "'; the choices of the exact method are 'token' and 'none'",
                    kind.has_value() ? " ('chunk' is for the methods 'linear1' and 'linear2')" : "");
  return Run(memory, normalize, in);
}

at::Tensor ZeroState(const Memory& memory, const at::Tensor& q, const at::Tensor& v,
                     const OptionalTensor& cu_seqlens) {
  TORCH_CHECK_VALUE(memory.zeros != kernels::ZeroStart::kInvalid, OperatorName(memory), " state is missing; ",
                    memory.name, " has no valid zero state, pass one of shape [B,H,M,D]");
  TORCH_CHECK_VALUE(q.dim() == 4 && v.dim() == 4, OperatorName(memory),
                    " q and v must have 4 dimensions, got ", q.dim(), " and ", v.dim());
  const c10::SymInt N = cu_seqlens.has_value() ? cu_seqlens->sym_numel() - 1 : q.sym_size(0);
  const c10::SymInt M = q.sym_size(3), D = v.sym_size(3);
  const at::ScalarType type = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto options = q.options().dtype(type);
  if (!memory.extra_state.empty())
    return at::zeros_symint({N, q.sym_size(2), memory.StateSize(M, D)}, options);
  return at::zeros_symint({N, q.sym_size(2), M, D}, options);
}

Result RunFrom(const OptionalTensor& state, const Memory& memory, const at::Tensor& q, const at::Tensor& k,
               const at::Tensor& v, std::vector<OptionalTensor> gates, const OptionalTensor& cu_seqlens) {
  const at::Tensor initial = state.has_value() ? *state : ZeroState(memory, q, v, cu_seqlens);
  return Run(memory, "token", {q, k, v, std::move(gates), initial, cu_seqlens});
}

Result RecurOp(const std::string& rule, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const OptionalTensor& gamma, const OptionalTensor& mu, const OptionalTensor& igate,
               const OptionalTensor& fgate, const OptionalTensor& state, const OptionalTensor& cu_seqlens) {
  const Memory& memory = MemoryNamed(rule);
  const auto gates = GatesByName(memory, {{"gamma", gamma}, {"mu", mu}, {"igate", igate}, {"fgate", fgate}});
  return RunFrom(state, memory, q, k, v, gates, cu_seqlens);
}

Result RecurWithOp(const std::string& rule, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   const GateList& gates, const OptionalTensor& state, const OptionalTensor& cu_seqlens) {
  const Memory& memory = MemoryNamed(rule);
  return RunFrom(state, memory, q, k, v, GatesOf(memory, gates), cu_seqlens);
}

// For kernels that are registered from Python: what those of the CPU check before they compute, but for the values of
// the state.
void CheckOp(LATTICE_RECURRENCE_PARAMETERS) {
  const Call call = LATTICE_RECURRENCE_CALL;
  CheckShapes(call.memory, call.in);
  if (call.in.cu_seqlens.has_value())
    CheckSequenceStarts(OperatorName(call.memory), *call.in.cu_seqlens, q.sym_size(1));
}

}  // namespace

Result Scan(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& gamma,
            const at::Tensor& state, const ScanOptions& options) {
  return ScanOp(q, k, v, gamma, options.mu, state, options.lam, options.cu_seqlens, options.objective,
                options.normalize, options.method, options.chunk, options.sweeps, options.tolerance);
}

Result Recur(const std::string& rule, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
             const RecurOptions& o) {
  return RecurOp(rule, q, k, v, o.gamma, o.mu, o.igate, o.fgate, o.state, o.cu_seqlens);
}

Result RecurWith(const Memory& memory, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 const std::vector<OptionalTensor>& gates, const OptionalTensor& state,
                 const OptionalTensor& cu_seqlens) {
  return RunFrom(state, memory, q, k, v, gates, cu_seqlens);
}

TORCH_LIBRARY(lattice, m) {
  m.def(
      "scan(Tensor q, Tensor k, Tensor v, Tensor gamma, Tensor? mu, Tensor state, Tensor? lam=None, "
      "Tensor? cu_seqlens=None, str objective=\"dec\", str normalize=\"token\", str method=\"exact\", "
      "int chunk=1, int sweeps=1, float? tolerance=None) -> (Tensor y, Tensor state_out)",
      ScanOp);
  m.def(
      "recur(str rule, Tensor q, Tensor k, Tensor v, Tensor? gamma=None, Tensor? mu=None, Tensor? "
      "igate=None, "
      "Tensor? fgate=None, Tensor? state=None, Tensor? cu_seqlens=None) -> (Tensor y, Tensor state_out)",
      RecurOp);
  m.def(
      "recur_with(str rule, Tensor q, Tensor k, Tensor v, Tensor?[] gates, Tensor? state=None, "
      "Tensor? cu_seqlens=None) -> (Tensor y, Tensor state_out)",
      RecurWithOp);
  m.def(
      "attention(Tensor q, Tensor k, Tensor v, Tensor? past_k=None, Tensor? past_v=None, "
      "Tensor? cu_seqlens=None, Tensor? keep=None) -> (Tensor y, Tensor keys, Tensor values)",
      Attention);
  m.def("isa() -> str", [] { return kernels::CurrentIsa(); });
  m.def("isas() -> str[]", [] { return kernels::AvailableIsas(); });
  m.def("_recurrence(" LATTICE_RECURRENCE_SCHEMA ") -> (Tensor y, Tensor state_out)");
  m.def("_forward(" LATTICE_RECURRENCE_SCHEMA
        ", bool keep, bool activations) -> (Tensor y, Tensor state_out, Tensor saved)");
  m.def("_check(" LATTICE_RECURRENCE_SCHEMA ") -> ()", CheckOp);
  m.def("_backward(" LATTICE_RECURRENCE_SCHEMA
        ", Tensor saved, Tensor dy, Tensor? dstate_out) -> "
        "(Tensor dq, Tensor dk, Tensor dv, Tensor dstate, Tensor[] dgates)");
}

}  // namespace lattice
