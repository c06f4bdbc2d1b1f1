// References of the linear memories and the delta rules, each with its adjoint below it. G is the whole
// gradient of S_new: from later tokens, plus q dy^T.
#include <algorithm>

#include "kernels/reference/math.h"
#include "kernels/reference/rules.h"

namespace lattice::kernels {
namespace {

// Indices of the gates: mu is the only one of the linear memories; the delta rules have gamma before it.
constexpr int kOnlyMu = 0, kGamma = 0, kMu = 1;

// mu_i: the slot's value where mu is a gate per slot, else the token's value (1 where the memory has no mu).
template <int kIndex, typename T>
T MuOf(const ReferenceToken<T>& x, int64_t i) {
  return x.slot_gate != nullptr ? x.slot_gate[i] : x.gates[kIndex];
}

template <int kIndex, typename T>
void AddMuGrad(const ReferenceToken<T>& x, int64_t i, T dmu, ReferenceGrad<T>& g) {
  (x.slot_gate != nullptr ? g.dslot_gate[i] : g.dgates[kIndex]) += dmu;
}

// y = q@S_new, and its adjoint: dq, and G.
template <typename T>
void Read(const ReferenceToken<T>& x, const Matrix<T>& S_new, T* state_new, T* y) {
  const Vector<T> read = Mix(x.q, S_new);
  S_new.CopyTo(state_new);
  std::copy(read.begin(), read.end(), y);
}

template <typename T>
Matrix<T> ReadAdjoint(const ReferenceToken<T>& x, const Matrix<T>& S_new, const T* dstate_new, const T* dy,
                      ReferenceGrad<T>& g) {
  const Vector<T> dq = RowDots(S_new, dy);
  std::copy(dq.begin(), dq.end(), g.dq);
  Matrix<T> G(x.M, x.D, dstate_new);
  AddOuter(T(1), x.q, dy, G);
  return G;
}

// linear_attention, mamba2, gla:   S_new = diag(mu) S + k v^T
template <typename T>
Matrix<T> Outer(const ReferenceToken<T>& x, const Matrix<T>& S) {
  Matrix<T> S_new(x.M, x.D);
  for (int64_t i = 0; i < x.M; ++i) {
    for (int64_t j = 0; j < x.D; ++j) S_new[i][j] = MuOf<kOnlyMu>(x, i) * S[i][j] + x.k[i] * x.v[j];
  }
  return S_new;
}

template <typename T>
Matrix<T> OuterAdjoint(const ReferenceToken<T>& x, const Matrix<T>& S, const Matrix<T>& G,
                       ReferenceGrad<T>& g) {
  Matrix<T> dS(x.M, x.D);
  for (int64_t i = 0; i < x.M; ++i) {
    AddMuGrad<kOnlyMu>(x, i, Dot(G[i], S[i], x.D), g);
    for (int64_t j = 0; j < x.D; ++j) {
      g.dk[i] += G[i][j] * x.v[j];
      g.dv[j] += x.k[i] * G[i][j];
      dS[i][j] = MuOf<kOnlyMu>(x, i) * G[i][j];
    }
  }
  return dS;
}

// deltanet, rwkv7:   z = k@S     e = z - v     S_new = diag(mu) S - gamma k e^T
template <typename T>
Vector<T> Error(const ReferenceToken<T>& x, const Matrix<T>& S) {
  Vector<T> e = Mix(x.k, S);
  for (int64_t j = 0; j < x.D; ++j) e[j] -= x.v[j];
  return e;
}

template <typename T>
Matrix<T> Delta(const ReferenceToken<T>& x, const Matrix<T>& S) {
  const Vector<T> e = Error(x, S);
  Matrix<T> S_new(x.M, x.D);
  for (int64_t i = 0; i < x.M; ++i) {
    for (int64_t j = 0; j < x.D; ++j)
      S_new[i][j] = MuOf<kMu>(x, i) * S[i][j] - x.gates[kGamma] * x.k[i] * e[j];
  }
  return S_new;
}

template <typename T>
Matrix<T> DeltaAdjoint(const ReferenceToken<T>& x, const Matrix<T>& S, const Matrix<T>& G,
                       ReferenceGrad<T>& g) {
  const Vector<T> e = Error(x, S);
  Vector<T> de(x.D);
  Matrix<T> dS(x.M, x.D);
  for (int64_t i = 0; i < x.M; ++i) {
    AddMuGrad<kMu>(x, i, Dot(G[i], S[i], x.D), g);
    for (int64_t j = 0; j < x.D; ++j) {
      g.dgates[kGamma] -= x.k[i] * e[j] * G[i][j];
      g.dk[i] -= x.gates[kGamma] * e[j] * G[i][j];
      de[j] -= x.gates[kGamma] * x.k[i] * G[i][j];
      dS[i][j] = MuOf<kMu>(x, i) * G[i][j];
    }
  }
  const Vector<T> S_de = RowDots(S, de.data());
  for (int64_t i = 0; i < x.M; ++i) g.dk[i] += S_de[i];
  for (int64_t j = 0; j < x.D; ++j) g.dv[j] -= de[j];
  AddOuter(T(1), x.k, de.data(), dS);
  return dS;
}

// gated_deltanet:   z = k@S     R = S - gamma k z^T     S_new = mu R + gamma k v^T
template <typename T>
Matrix<T> Erased(const ReferenceToken<T>& x, const Matrix<T>& S) {
  Matrix<T> R = S;
  AddOuter(-x.gates[kGamma], x.k, Mix(x.k, S).data(), R);
  return R;
}

template <typename T>
Matrix<T> GatedDelta(const ReferenceToken<T>& x, const Matrix<T>& S) {
  const Matrix<T> R = Erased(x, S);
  Matrix<T> S_new(x.M, x.D);
  for (int64_t i = 0; i < x.M; ++i) {
    for (int64_t j = 0; j < x.D; ++j)
      S_new[i][j] = x.gates[kMu] * R[i][j] + x.gates[kGamma] * x.k[i] * x.v[j];
  }
  return S_new;
}

template <typename T>
Matrix<T> GatedDeltaAdjoint(const ReferenceToken<T>& x, const Matrix<T>& S, const Matrix<T>& G,
                            ReferenceGrad<T>& g) {
  const Matrix<T> R = Erased(x, S);
  const Vector<T> z = Mix(x.k, S);
  Vector<T> dz(x.D);
  Matrix<T> dS(x.M, x.D);
  for (int64_t i = 0; i < x.M; ++i) {
    for (int64_t j = 0; j < x.D; ++j) {
      const T dR = x.gates[kMu] * G[i][j];
      g.dgates[kMu] += G[i][j] * R[i][j];
      g.dgates[kGamma] += x.k[i] * x.v[j] * G[i][j] - x.k[i] * z[j] * dR;
      g.dk[i] += x.gates[kGamma] * x.v[j] * G[i][j] - x.gates[kGamma] * z[j] * dR;
      g.dv[j] += x.gates[kGamma] * x.k[i] * G[i][j];
      dz[j] -= x.gates[kGamma] * x.k[i] * dR;
      dS[i][j] = dR;
    }
  }
  const Vector<T> S_dz = RowDots(S, dz.data());
  for (int64_t i = 0; i < x.M; ++i) g.dk[i] += S_dz[i];
  AddOuter(T(1), x.k, dz.data(), dS);
  return dS;
}

template <typename T>
using UpdateFn = Matrix<T> (*)(const ReferenceToken<T>&, const Matrix<T>&);
template <typename T>
using UpdateAdjointFn = Matrix<T> (*)(const ReferenceToken<T>&, const Matrix<T>&, const Matrix<T>&,
                                      ReferenceGrad<T>&);

// The step of a rule: its update, then y = q@S_new. Adjoint is that of both.
template <typename T, UpdateFn<T> kUpdate>
void Step(const ReferenceToken<T>& x, const T* S, T* S_new, T* y) {
  Read(x, kUpdate(x, Matrix<T>(x.M, x.D, S)), S_new, y);
}

template <typename T, UpdateFn<T> kUpdate, UpdateAdjointFn<T> kAdjoint>
void Adjoint(const ReferenceToken<T>& x, const T* state, const T* dS_new, const T* dy, T* dS,
             ReferenceGrad<T>& g) {
  const Matrix<T> S(x.M, x.D, state);
  const Matrix<T> G = ReadAdjoint(x, kUpdate(x, S), dS_new, dy, g);
  kAdjoint(x, S, G, g).CopyTo(dS);
}

template <typename T, UpdateFn<T> kUpdate, UpdateAdjointFn<T> kAdjoint>
ReferenceRule<T> RuleOf() {
  return {Step<T, kUpdate>, Adjoint<T, kUpdate, kAdjoint>};
}

}  // namespace

template <typename T>
void AddLinearReferences(ReferenceTable<T>& table) {
  table["linear_attention"] = RuleOf<T, Outer<T>, OuterAdjoint<T>>();
  table["mamba2"] = RuleOf<T, Outer<T>, OuterAdjoint<T>>();
  table["gla"] = RuleOf<T, Outer<T>, OuterAdjoint<T>>();
  table["deltanet"] = RuleOf<T, Delta<T>, DeltaAdjoint<T>>();
  table["rwkv7"] = RuleOf<T, Delta<T>, DeltaAdjoint<T>>();
  table["gated_deltanet"] = RuleOf<T, GatedDelta<T>, GatedDeltaAdjoint<T>>();
}

template void AddLinearReferences(ReferenceTable<float>&);
template void AddLinearReferences(ReferenceTable<double>&);

}  // namespace lattice::kernels
