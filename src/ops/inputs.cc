// The checks that stand before every recurrence. Sizes may be symbolic, so that the same checks serve torch.compile.
#include "ops/inputs.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/TensorSubclassLikeUtils.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "kernels/registry.h"

namespace lattice {
namespace {

using kernels::GateInfo;
using kernels::GateRole;
using kernels::Memory;
using Shape = std::vector<c10::SymInt>;

std::string Print(c10::SymIntArrayRef shape) {
  std::ostringstream out;
  out << '[';
  for (size_t i = 0; i < shape.size(); ++i) out << (i == 0 ? "" : ",") << shape[i];
  out << ']';
  return out.str();
}

void CheckSequenceTensor(const std::string& op, const at::Tensor& cu) {
  const bool whole = cu.scalar_type() == at::kLong || cu.scalar_type() == at::kInt;
  TORCH_CHECK_VALUE(cu.dim() == 1 && whole && cu.sym_size(0) >= 2, op,
                    " cu_seqlens must be an int64 or int32 tensor [N+1] with N >= 1, got ", cu.scalar_type(),
                    " of shape ", Print(cu.sym_sizes()));
}

class ShapeChecker {
 public:
  ShapeChecker(const Memory& memory, const Inputs& in)
      : memory_(memory), in_(in), op_(OperatorName(memory)) {}

  void Run() {
    Rank4("q", in_.q);
    Rank4("k", in_.k);
    Rank4("v", in_.v);
    CheckSizes();
    CheckGates();
    CheckState();
  }

 private:
  void Rank4(const char* name, const at::Tensor& x) {
    TORCH_CHECK_VALUE(x.dim() == 4, op_, " ", name, " must have 4 dimensions [B,T,H,",
                      name[0] == 'v' ? 'D' : 'M', "], got shape ", Print(x.sym_sizes()));
  }

  void CheckSizes() {
    const auto q = in_.q.sym_sizes(), k = in_.k.sym_sizes(), v = in_.v.sym_sizes();
    B_ = q[0], T_ = q[1], H_ = q[2], M_ = q[3], D_ = v[3];
    TORCH_CHECK_VALUE(q == k, op_, " k has shape ", Print(k), " but q has ", Print(q),
                      "; both must be [B,T,H,M] with the same sizes");
    TORCH_CHECK_VALUE(v[0] == B_ && v[1] == T_, op_, " v has shape ", Print(v), " but q has ", Print(q),
                      "; batch and time must agree: v is [B,T,H,D]");
    TORCH_CHECK_VALUE(v[2] == H_, op_, " v has ", v[2], " heads but q has ", H_, "; pass v of shape ",
                      Print(Shape{B_, T_, H_, D_}));
    TORCH_CHECK_VALUE(T_ >= 1, op_, " T is 0: there must be at least one token, got q of shape ", Print(q));
    CheckCountable();
    TORCH_CHECK_VALUE(B_ >= 1 && H_ >= 1 && M_ >= 1 && D_ >= 1, op_, " every size must be at least 1, got q ",
                      Print(q), " and v ", Print(v));
  }

  // The bytes of the largest tensors, inputs, states, checkpoints and saved activations, must be countable in 63 bits.
  void CheckCountable() {
    const auto B = B_.maybe_as_int(), T = T_.maybe_as_int(), H = H_.maybe_as_int();
    const auto M = M_.maybe_as_int(), D = D_.maybe_as_int();
    if (!B || !T || !H || !M || !D) return;
    int64_t tokens = 0, slots = 0, state = 0, bytes = 0;
    const bool overflows = __builtin_mul_overflow(*B, *T, &tokens) ||
                           __builtin_mul_overflow(tokens, *H, &tokens) ||
                           __builtin_mul_overflow(*M, *D, &state) || __builtin_add_overflow(*M, *D, &slots) ||
                           __builtin_mul_overflow(state, int64_t{64}, &state) ||
                           __builtin_mul_overflow(tokens, std::max(2 * slots, state), &bytes) ||
                           __builtin_mul_overflow(bytes, int64_t{sizeof(double)}, &bytes);
    TORCH_CHECK_VALUE(!overflows, op_, " the sizes B,T,H,M,D = ", *B, ",", *T, ",", *H, ",", *M, ",", *D,
                      " are expected to fit into memory, but their product overflows; use smaller tensors");
  }

  void CheckGates() {
    for (size_t i = 0; i < memory_.gates.size(); ++i) {
      const GateInfo& gate = memory_.gates[i];
      const OptionalTensor& x = in_.gates[i];
      TORCH_CHECK_VALUE(x.has_value() || !gate.required, op_, " ", gate.name, " is missing; ",
                        GatesText(memory_));
      if (!x.has_value()) continue;
      Shape want{B_, T_, H_};
      if (gate.per_slot) want.push_back(M_);
      TORCH_CHECK_VALUE(x->sym_sizes() == c10::SymIntArrayRef(want), op_, " ", gate.name, " has shape ",
                        Print(x->sym_sizes()), " but ", memory_.name, " needs ",
                        gate.per_slot ? "[B,T,H,M]" : "[B,T,H]", " = ", Print(want));
    }
  }

  void CheckState() {
    c10::SymInt sequences = B_;
    const char* leading = "B";
    if (in_.cu_seqlens.has_value()) {
      const at::Tensor& cu = *in_.cu_seqlens;
      TORCH_CHECK_VALUE(B_ == 1, op_,
                        " with cu_seqlens the batch must be 1 (sequences lie one after the other), got ", B_);
      sequences = cu.sym_size(0) - 1;
      leading = "N";
    }
    const auto got = in_.state.sym_sizes();
    Shape want{sequences, H_, M_, D_};
    std::string letters = ",H,M,D] = ";
    if (!memory_.extra_state.empty()) {
      want = {sequences, H_, memory_.StateSize(M_, D_)};
      letters = ",H,M*D";
      for (const kernels::StatePart& part : memory_.extra_state) letters += part.per_slot ? "+M" : "+1";
      letters += "] = ";
    } else if (got.size() == 4) {
      TORCH_CHECK_VALUE(got[2] == M_, op_, " k has ", M_, " slots but state has ", got[2],
                        "; pass a state of shape [", leading, letters, Print(want));
    }
    TORCH_CHECK_VALUE(got == c10::SymIntArrayRef(want), op_, " state has shape ", Print(got),
                      "; pass a state of shape [", leading, letters, Print(want));
  }

  const Memory& memory_;
  const Inputs& in_;
  const std::string op_;
  c10::SymInt B_, T_, H_, M_, D_;
};

class TypeChecker {
 public:
  TypeChecker(const Memory& memory, const Inputs& in) : memory_(memory), in_(in), op_(OperatorName(memory)) {}

  void Run() {
    const at::ScalarType state = in_.state.scalar_type();
    TORCH_CHECK_TYPE(state == at::kFloat || state == at::kDouble, op_, " state is ", state,
                     "; it must be float32 or float64");
    SameKind("q", in_.q);
    SameKind("k", in_.k);
    SameKind("v", in_.v);
    TORCH_CHECK_TYPE(in_.q.scalar_type() == in_.k.scalar_type() && in_.q.scalar_type() == in_.v.scalar_type(),
                     op_, " q, k and v must have one type, got ", in_.q.scalar_type(), ", ",
                     in_.k.scalar_type(), " and ", in_.v.scalar_type());
    for (size_t i = 0; i < memory_.gates.size(); ++i) {
      if (in_.gates[i].has_value()) SameKind(memory_.gates[i].name, *in_.gates[i]);
    }
    CheckDevice("state", in_.state);
    if (!in_.cu_seqlens.has_value()) return;
    CheckSequenceTensor(op_, *in_.cu_seqlens);
    CheckDevice("cu_seqlens", *in_.cu_seqlens);
  }

 private:
  void SameKind(const std::string& name, const at::Tensor& x) {
    const at::ScalarType type = x.scalar_type(), state = in_.state.scalar_type();
    TORCH_CHECK_TYPE(type == state || (state == at::kFloat && type == at::kBFloat16), op_, " ", name, " is ",
                     type, " but state is ", state,
                     "; use one type, or bfloat16 inputs with a float32 state");
    CheckDevice(name, x);
  }

  void CheckDevice(const std::string& name, const at::Tensor& x) {
    TORCH_CHECK_VALUE(x.device() == in_.q.device(), op_, " ", name, " is on ", x.device(), " but q is on ",
                      in_.q.device(), "; move them to one device");
  }

  const Memory& memory_;
  const Inputs& in_;
  const std::string op_;
};

}  // namespace

std::string OperatorName(const Memory& memory) { return memory.objective.has_value() ? "[scan]" : "[recur]"; }

const Memory& MemoryNamed(const std::string& name) {
  for (const Memory& memory : kernels::Memories()) {
    if (!memory.attention && memory.RecurName() == name) return memory;
  }
  std::string known;
  for (const Memory& memory : kernels::Memories()) {
    if (!memory.attention) known += (known.empty() ? "" : ", ") + memory.RecurName();
  }
  TORCH_CHECK_VALUE(false, "[recur] unknown rule '", name, "'; the rules are: ", known);
}

std::string GatesText(const Memory& memory) {
  std::string text;
  for (const GateInfo& gate : memory.gates) {
    text += (text.empty() ? " takes " : ", ") + gate.name + (gate.per_slot ? " [B,T,H,M]" : " [B,T,H]") +
            (gate.required ? "" : " (optional)");
  }
  return memory.name + (text.empty() ? " takes no gates" : text);
}

std::vector<OptionalTensor> GatesOf(const Memory& memory, const GateList& gates) {
  TORCH_CHECK_VALUE(gates.size() <= memory.gates.size(), OperatorName(memory), " got ", gates.size(),
                    " gates; ", GatesText(memory));
  std::vector<OptionalTensor> all(memory.gates.size());
  for (size_t i = 0; i < gates.size(); ++i) all[i] = gates.get(i);
  return all;
}

std::vector<OptionalTensor> GatesByName(const Memory& memory,
                                        std::initializer_list<std::pair<const char*, OptionalTensor>> named) {
  std::vector<OptionalTensor> gates(memory.gates.size());
  for (const auto& [name, gate] : named) {
    if (!gate.has_value()) continue;
    const int place = memory.FindGate(name);
    TORCH_CHECK_VALUE(place >= 0, OperatorName(memory), " ", name, " was given, but ", memory.name,
                      " does not take it; ", GatesText(memory));
    gates[static_cast<size_t>(place)] = gate;
  }
  return gates;
}

GateList Inputs::GatesAsList() const {
  GateList list;
  for (const OptionalTensor& gate : gates) list.push_back(gate);
  return list;
}

std::vector<at::Tensor> Inputs::Differentiable() const {
  std::vector<at::Tensor> all = {q, k, v, state};
  for (const OptionalTensor& gate : gates) all.push_back(gate.value_or(at::Tensor()));
  return all;
}

Inputs Inputs::Widened() const {
  const at::ScalarType type = state.scalar_type();
  Inputs wide{q.to(type), k.to(type), v.to(type), gates, state, cu_seqlens};
  for (OptionalTensor& gate : wide.gates) {
    if (gate.has_value()) gate = gate->to(type);
  }
  if (cu_seqlens.has_value()) wide.cu_seqlens = cu_seqlens->to(at::kLong);
  return wide;
}

Inputs Inputs::ForDevice() const {
  if (HasCpuKernels(q)) return Widened();
  Inputs in = *this;
  if (cu_seqlens.has_value()) in.cu_seqlens = cu_seqlens->to(at::kLong);
  return in;
}

void CheckTypes(const Memory& memory, const Inputs& in) { TypeChecker(memory, in).Run(); }
void CheckShapes(const Memory& memory, const Inputs& in) { ShapeChecker(memory, in).Run(); }

void CheckStart(const Memory& memory, const Inputs& in) {
  const int shrink = memory.FindGate(GateRole::kShrink);
  const bool shrinks = shrink >= 0 && in.gates[static_cast<size_t>(shrink)].has_value();
  if (memory.zeros != kernels::ZeroStart::kInvalid || shrinks || !in.state.device().is_cpu()) return;
  const at::Tensor state = in.state.contiguous();
  const int64_t heads = state.size(0) * state.size(1), size = state.numel() / heads;
  AT_DISPATCH_FLOATING_TYPES(state.scalar_type(), "lattice_check_start", [&] {
    const scalar_t* data = state.const_data_ptr<scalar_t>();
    for (int64_t head = 0; head < heads; ++head, data += size) {
      const bool starts = std::any_of(data, data + size, [](scalar_t x) { return x != 0; });
      TORCH_CHECK_VALUE(
          starts, OperatorName(memory), " state is all zeros in head ", head % state.size(1), " of sequence ",
          head / state.size(1), ", but ", memory.name,
          " has no valid zero state: a slot needs a direction; pass for example random unit slots");
    }
  });
}

bool HasValues(const at::Tensor& x) { return !x.is_meta() && !at::isTensorSubclassLike(x); }

std::vector<int64_t> SequenceStarts(const std::string& op, const at::Tensor& cu_seqlens, int64_t T) {
  CheckSequenceTensor(op, cu_seqlens);
  TORCH_CHECK_VALUE(HasValues(cu_seqlens), op, " the values of cu_seqlens are needed, but it is on ",
                    cu_seqlens.device(), " without any; pass a tensor that has them");
  const at::Tensor host = cu_seqlens.to(at::kCPU, at::kLong).contiguous();
  const int64_t* data = host.const_data_ptr<int64_t>();
  std::vector<int64_t> starts(data, data + host.numel());
  TORCH_CHECK_VALUE(starts.front() == 0, op, " cu_seqlens must start at 0, got ", starts.front());
  TORCH_CHECK_VALUE(starts.back() == T, op, " cu_seqlens must end at T = ", T, ", got ", starts.back());
  for (size_t n = 1; n < starts.size(); ++n) {
    TORCH_CHECK_VALUE(starts[n - 1] <= starts[n], op, " cu_seqlens must never fall, but entry ", n, " is ",
                      starts[n], " after ", starts[n - 1]);
  }
  return starts;
}

void CheckSequenceStarts(const std::string& op, const at::Tensor& cu_seqlens, const c10::SymInt& T) {
  CheckSequenceTensor(op, cu_seqlens);
  if (!HasValues(cu_seqlens)) return;
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Checked {
    std::optional<WeakTensor> tensor;
    int64_t version = 0, T = 0;
  };
  static thread_local Checked last;
  const int64_t length = T.expect_int();
  const bool versioned = !cu_seqlens.is_inference();
  const int64_t version = versioned ? cu_seqlens._version() : 0;
  const bool same = last.tensor.has_value() && last.tensor->lock().get() == cu_seqlens.unsafeGetTensorImpl();
  if (same && last.version == version && last.T == length) return;
  SequenceStarts(op, cu_seqlens, length);
  if (versioned) last = {WeakTensor(cu_seqlens.getIntrusivePtr()), version, length};
}

void RequireNoTangents(const std::string& op, at::TensorList tensors) {
  for (const at::Tensor& x : tensors) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        !x.defined() || !x._fw_grad(/*level=*/0).defined(), op,
        " has no forward-mode derivatives (torch.func.jvp, jacfwd, forward_ad); use reverse "
        "mode: backward, torch.autograd.grad, torch.func.vjp or jacrev");
  }
}

}  // namespace lattice
