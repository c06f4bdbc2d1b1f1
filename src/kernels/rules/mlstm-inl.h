// The matrix memory of xLSTM with its stabiliser m. The gates i and f are pre-activations; ' marks what is
// new:
//   m' = max(log sigmoid(f) + m, i)    f' = exp(log sigmoid(f) + m - m')    i' = exp(i - m')    kh = k M^-1/2
//   S' = f' S + i' kh v^T    n' = f' n + i' kh    y = q@S' / max(|q.n'|, exp(-m'))
// In the engine's form: A = f', B = -i' kh, h = v. The normaliser n is one more column of the matrix, for
// which v is always 1. In memory the state is S [M,D], then n [M], then m.
#if defined(LATTICE_KERNELS_RULES_MLSTM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_RULES_MLSTM_INL_H_
#undef LATTICE_KERNELS_RULES_MLSTM_INL_H_
#else
#define LATTICE_KERNELS_RULES_MLSTM_INL_H_
#endif

#include <cmath>

#include "base/functions.h"
#include "kernels/engine/engine-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T>
struct MlstmRule : RuleBase<T> {
  static constexpr size_t kExtraColumns = 1;
  static constexpr bool kReadOut = true;
  static constexpr int kGates = 2;
  using RuleBase<T>::RuleBase;
  using RuleBase<T>::d;
  using RuleBase<T>::p;

  enum Gate { kInputGate, kForgetGate };
  // Saved for the adjoint: f', i', m', whether m' came from the forget gate; the denominator of y, whether it
  // is |q.n'|, the sign of q.n', and the gradient of m' through the denominator; and y.
  enum Scalar { kForget, kInput, kM, kFromForget, kDen, kByN, kSign, kDm };
  enum Aux { kY };

  void Load(const T* state, T* S) { m_ = LoadParts(state, S); }
  void Save(const T* S, T* state) { SaveParts(S, m_, state); }
  void LoadGrad(const T* dstate, T* G) {
    if (dstate != nullptr) {
      dm_ = LoadParts(dstate, G);
    } else {
      LoadMatrix(d, dstate, 0, G);
      dm_ = T(0);
    }
  }
  void SaveGrad(const T* G, T* dstate) { SaveParts(G, dm_, dstate); }

  void MakeStep(const Token<T>& x, Step<T>& step) {
    const T input = x.gates[kInputGate], decayed = LogSigmoid(x.gates[kForgetGate]) + m_;
    const T m = decayed >= input ? decayed : input;
    step.scalar[kForget] = static_cast<T>(Exp(decayed - m));
    step.scalar[kInput] = static_cast<T>(Exp(input - m));
    step.scalar[kFromForget] = decayed >= input;
    step.scalar[kM] = m;
    Fill(step.scalar[kForget], d.rows, step.A);
    Scale(-step.scalar[kInput] * KeyScale(), x.k, d.rows, step.B);
    Scale(T(1), x.v, d.stride, step.h);
    m_ = m;
  }

  // y holds (q@S', q.n') and becomes the output.
  void Read(const Token<T>&, Step<T>& step, T* y) {
    const T qn = y[p.width], floor = static_cast<T>(Exp(-step.scalar[kM]));
    const bool by_n = !(std::abs(qn) < floor);  // written so that a NaN stays NaN
    step.scalar[kDen] = by_n ? std::abs(qn) : floor;
    step.scalar[kByN] = by_n;
    step.scalar[kSign] = qn < 0 ? T(-1) : T(1);
    Scale(T(1) / step.scalar[kDen], y, d.stride, y);
    Scale(T(1), y, d.stride, step.aux[kY]);
  }

  // dy becomes the gradient of (q@S', q.n'); kDm is set to that of m', which exp(-m') in the denominator has.
  void ReadAdjoint(Step<T>& step, T* dy) {
    dy[p.width] = T(0);
    const T den = step.scalar[kDen];
    const T dden = -Dot(dy, step.aux[kY], d.stride) / den;
    Scale(T(1) / den, dy, d.stride, dy);
    // The next cells use the same padding: a NaN of this one must not stay in it.
    for (size_t j = d.width; j < d.stride; ++j) dy[j] = T(0);
    const bool by_n = step.scalar[kByN] != T(0);
    dy[p.width] = by_n ? dden * step.scalar[kSign] : T(0);
    step.scalar[kDm] = by_n ? T(0) : -dden * den;
  }

  // dlog_forget and dlog_input are the gradients of log f' and log i', both of which contain -m'; dm_ is that
  // of m', then of m.
  void Adjoint(const Token<T>& x, const Step<T>& step, StepGrad<T>& g) {
    const T forget = step.scalar[kForget], input = step.scalar[kInput];
    const T dlog_forget = Sum(g.dA, d.rows) * forget;
    const T dlog_input = -KeyScale() * input * Dot(g.dB, x.k, d.rows);
    Scale(-input * KeyScale(), g.dB, d.rows, g.dk);
    Scale(T(1), g.dh, d.stride, g.dv);
    const T dm = dm_ + step.scalar[kDm] - dlog_forget - dlog_input;
    const bool from_forget = step.scalar[kFromForget] != T(0);
    const T ddecayed = dlog_forget + (from_forget ? dm : T(0));
    g.dgates[kInputGate] += dlog_input + (from_forget ? T(0) : dm);
    g.dgates[kForgetGate] += ddecayed / (T(1) + std::exp(x.gates[kForgetGate]));
    dm_ = ddecayed;
  }

 private:
  static T LogSigmoid(T f) { return static_cast<T>(f < 0 ? f - Log1p(Exp(f)) : -Log1p(Exp(-f))); }
  T KeyScale() const { return T(1) / std::sqrt(static_cast<T>(p.slots)); }

  T LoadParts(const T* state, T* S) const {
    LoadMatrix(d, state, p.width, S);
    const T* n = state + p.slots * p.width;
    for (int64_t i = 0; i < p.slots; ++i) S[i * d.stride + p.width] = n[i];
    return n[p.slots];
  }
  void SaveParts(const T* S, T m, T* state) const {
    StoreMatrix(d, S, p.width, state);
    T* n = state + p.slots * p.width;
    for (int64_t i = 0; i < p.slots; ++i) n[i] = S[i * d.stride + p.width];
    n[p.slots] = m;
  }

  T m_ = 0;
  T dm_ = 0;
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_MLSTM_INL_H_
