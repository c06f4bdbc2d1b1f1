#include "ops/inputs.h"

#include <ATen/ATen.h>
#include <ATen/TensorSubclassLikeUtils.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/error.h"

namespace lattice {
namespace {

using kernels::RuleInfo;
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

class Checker {
 public:
  Checker(const RuleInfo& rule, const Inputs& in) : rule_(rule), in_(in), op_(OperatorName(rule)) {}

  void Run(const std::string& normalize) {
    TORCH_CHECK_VALUE(normalize == "token" || normalize == "none", op_, " normalize is '", normalize,
                      "'; the choices of the exact method are 'token' and 'none'",
                      normalize == "chunk" ? " ('chunk' is for the methods 'linear1' and 'linear2')" : "");
    Rank4("q", in_.q);
    Rank4("k", in_.k);
    Rank4("v", in_.v);
    CheckSizes();
    CheckGates();
    CheckState();
    CheckTypes();
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

  // The bytes of the largest tensors, inputs, states and what is kept, must be countable in 63 bits.
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

  void Gate(const char* name, const OptionalTensor& gate, unsigned bit, bool slots) {
    const bool takes = ((rule_.gates | rule_.optional_gates) & bit) != 0;
    if (!gate.has_value()) {
      TORCH_CHECK_VALUE((rule_.gates & bit) == 0, op_, " ", name, " is missing; ", Taken());
      return;
    }
    TORCH_CHECK_VALUE(takes, op_, " ", name, " was given, but ", rule_.name, " does not take it; ", Taken());
    Shape want{B_, T_, H_};
    if (slots) want.push_back(M_);
    TORCH_CHECK_VALUE(gate->sym_sizes() == c10::SymIntArrayRef(want), op_, " ", name, " has shape ",
                      Print(gate->sym_sizes()), " but ", rule_.name, " needs ",
                      slots ? "[B,T,H,M]" : "[B,T,H]", " = ", Print(want));
  }

  void CheckGates() {
    const bool slot_mu = (rule_.gates & kernels::kSlotMuGate) != 0;
    Gate("gamma", in_.gamma, kernels::kGamma, false);
    Gate("mu", in_.mu, slot_mu ? kernels::kSlotMuGate : kernels::kMu, slot_mu);
    Gate("igate", in_.igate, kernels::kInput, false);
    Gate("fgate", in_.fgate, kernels::kForget, false);
    if (!in_.lam.has_value()) return;
    TORCH_CHECK_VALUE(rule_.shrink_kernels.forward_f32 != nullptr, op_, " lam was given, but ", rule_.name,
                      " has no shrinkage");
    TORCH_CHECK_VALUE(in_.lam->sym_sizes() == c10::SymIntArrayRef(Shape{B_, T_, H_}), op_, " lam has shape ",
                      Print(in_.lam->sym_sizes()), "; pass a number or [B,T,H] = ", Print(Shape{B_, T_, H_}));
  }

  std::string Taken() const {
    std::string gates;
    const auto add = [&](unsigned bit, const char* text) {
      if (((rule_.gates | rule_.optional_gates) & bit) == 0) return;
      gates +=
          (gates.empty() ? "" : ", ") + std::string(text) + ((rule_.gates & bit) == 0 ? " (optional)" : "");
    };
    add(kernels::kGamma, "gamma [B,T,H]");
    add(kernels::kMu, "mu [B,T,H]");
    add(kernels::kSlotMuGate, "mu [B,T,H,M]");
    add(kernels::kInput, "igate [B,T,H]");
    add(kernels::kForget, "fgate [B,T,H]");
    return rule_.name + (gates.empty() ? " takes no gates" : " takes " + gates);
  }

  void CheckState() {
    c10::SymInt sequences = B_;
    const char* leading = "B";
    if (in_.cu_seqlens.has_value()) {
      const at::Tensor& cu = *in_.cu_seqlens;
      CheckSequenceTensor(op_, cu);
      TORCH_CHECK_VALUE(B_ == 1, op_,
                        " with cu_seqlens the batch must be 1 (sequences lie one after the other), got ", B_);
      sequences = cu.sym_size(0) - 1;
      leading = "N";
    }
    const auto got = in_.state.sym_sizes();
    Shape want{sequences, H_, M_, D_};
    const char* letters = ",H,M,D] = ";
    if (rule_.vector_state) {
      want = {sequences, H_, M_ * D_ + M_ + 1};
      letters = ",H,M*D+M+1] = ";
    } else if (got.size() == 4) {
      TORCH_CHECK_VALUE(got[2] == M_, op_, " k has ", M_, " slots but state has ", got[2],
                        "; pass a state of shape [", leading, letters, Print(want));
    }
    TORCH_CHECK_VALUE(got == c10::SymIntArrayRef(want), op_, " state has shape ", Print(got),
                      "; pass a state of shape [", leading, letters, Print(want));
  }

  void SameKind(const char* name, const OptionalTensor& x) {
    if (!x.has_value()) return;
    const at::ScalarType type = x->scalar_type(), state = in_.state.scalar_type();
    TORCH_CHECK_TYPE(type == state || (state == at::kFloat && type == at::kBFloat16), op_, " ", name, " is ",
                     type, " but state is ", state,
                     "; use one type, or bfloat16 inputs with a float32 state");
    CheckDevice(name, *x);
  }

  void CheckDevice(const char* name, const at::Tensor& x) {
    TORCH_CHECK_VALUE(x.device() == in_.q.device(), op_, " ", name, " is on ", x.device(), " but q is on ",
                      in_.q.device(), "; move them to one device");
  }

  void CheckTypes() {
    const at::ScalarType state = in_.state.scalar_type();
    TORCH_CHECK_TYPE(state == at::kFloat || state == at::kDouble, op_, " state is ", state,
                     "; it must be float32 or float64");
    SameKind("q", in_.q);
    SameKind("k", in_.k);
    SameKind("v", in_.v);
    TORCH_CHECK_TYPE(in_.q.scalar_type() == in_.k.scalar_type() && in_.q.scalar_type() == in_.v.scalar_type(),
                     op_, " q, k and v must have one type, got ", in_.q.scalar_type(), ", ",
                     in_.k.scalar_type(), " and ", in_.v.scalar_type());
    SameKind("gamma", in_.gamma);
    SameKind("mu", in_.mu);
    SameKind("lam", in_.lam);
    SameKind("igate", in_.igate);
    SameKind("fgate", in_.fgate);
    CheckDevice("state", in_.state);
    if (in_.cu_seqlens.has_value()) CheckDevice("cu_seqlens", *in_.cu_seqlens);
  }

  const RuleInfo& rule_;
  const Inputs& in_;
  const std::string op_;
  c10::SymInt B_, T_, H_, M_, D_;
};

}  // namespace

std::string OperatorName(const RuleInfo& rule) {
  return rule.name.starts_with("lattice_") ? "[scan]" : "[recur]";
}

const RuleInfo& RuleNamed(const std::string& name) {
  try {
    return kernels::FindRule(name);
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(false, error.what());
  }
}

void CheckInputs(const RuleInfo& rule, const std::string& normalize, const Inputs& in) {
  Checker(rule, in).Run(normalize);
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

void RequireNoTangents(const char* op, std::initializer_list<at::Tensor> tensors) {
  for (const at::Tensor& x : tensors) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        !x.defined() || !x._fw_grad(/*level=*/0).defined(), op,
        " has no forward-mode derivatives (torch.func.jvp, jacfwd, forward_ad); use reverse "
        "mode: backward or torch.autograd.grad");
  }
}

}  // namespace lattice
