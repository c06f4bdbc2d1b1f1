// Reference of the exact Lattice step and its adjoint, line by line as in docs/recurrence.md.
//
//   s_i = sqrt(|S_i|^2 + eps^2)     Phi_i = S_i / s_i     eps = 1e-6
//   Dec: h = k@Phi - v, c = k       Sim: h = -v, c = k    Enc: h = v, c = Phi@v - k
//   a_i = <Phi_i, h>     ch_i = c_i / s_i     U_i = h - a_i Phi_i     Delta_i = ch_i U_i
//   Z = mu S - gamma Delta          with lam: Z = soft(Z, gamma lam)
//   beta_i = 1 | s_i / sqrt(mu^2 s_i^2 + gamma^2 dsq_i), dsq_i = max(0, ch_i^2 (|h|^2 - a_i^2))
//              | s_i / sqrt(|Z_i|^2 + eps^2) with lam
//   S_new,i = beta_i Z_i     y = q@S_new
#include <algorithm>
#include <cmath>

#include "kernels/reference/math.h"
#include "kernels/reference/rules.h"

namespace lattice::kernels {
namespace {

template <typename T>
constexpr T kEps2 = T(1e-12);

// All intermediate values of a step, by their names in the formulas.
template <typename T>
struct Named {
  Vector<T> s, a, c, ch, dsq, den, beta;  // [M]; beta_i = s_i / den_i
  Vector<T> h;                            // [D]
  T hh;                                   // |h|^2
  Matrix<T> Phi, U, Delta, Z;             // [M,D]; Z after the shrinkage
};

template <Objective kObjective, typename T>
void MakeTarget(const ReferenceToken<T>& x, Named<T>& f) {
  const bool enc = kObjective == Objective::kEnc;
  f.h = kObjective == Objective::kDec ? Mix(x.k, f.Phi) : Vector<T>(x.D);
  for (int64_t j = 0; j < x.D; ++j) f.h[j] += enc ? x.v[j] : -x.v[j];
  f.c = enc ? RowDots(f.Phi, x.v) : Vector<T>(x.k, x.k + x.M);
  for (int64_t i = 0; i < x.M && enc; ++i) f.c[i] -= x.k[i];
  f.hh = Dot(f.h.data(), f.h.data(), x.D);
}

template <typename T>
T Soft(T z, T threshold) {
  return std::copysign(std::max(std::abs(z) - threshold, T(0)), z);
}

// The denominator of beta_i; s_i itself without normalisation, so that beta_i = 1.
template <typename T>
T Denominator(const ReferenceToken<T>& x, const Named<T>& f, int64_t i) {
  if (x.normalize == Normalize::kNone) return f.s[i];
  if (x.given[kLamGate]) return std::sqrt(Dot(f.Z[i], f.Z[i], x.D) + kEps2<T>);
  return std::sqrt(x.gates[kMuGate] * x.gates[kMuGate] * f.s[i] * f.s[i] +
                   x.gates[kGammaGate] * x.gates[kGammaGate] * f.dsq[i]);
}

template <Objective kObjective, typename T>
Named<T> Compute(const ReferenceToken<T>& x, const Matrix<T>& S) {
  const int64_t M = x.M, D = x.D;
  const Vector<T> m(M);
  Named<T> f{m, m, m, m, m, m, m, {}, T(0), S, S, S, S};
  for (int64_t i = 0; i < M; ++i) {
    f.s[i] = std::sqrt(Dot(S[i], S[i], D) + kEps2<T>);
    for (int64_t j = 0; j < D; ++j) f.Phi[i][j] = S[i][j] / f.s[i];
  }
  MakeTarget<kObjective>(x, f);
  for (int64_t i = 0; i < M; ++i) {
    f.a[i] = Dot(f.Phi[i], f.h.data(), D);
    f.ch[i] = f.c[i] / f.s[i];
    f.dsq[i] = std::max(T(0), f.ch[i] * f.ch[i] * (f.hh - f.a[i] * f.a[i]));
    for (int64_t j = 0; j < D; ++j) {
      f.U[i][j] = f.h[j] - f.a[i] * f.Phi[i][j];
      f.Delta[i][j] = f.ch[i] * f.U[i][j];
      f.Z[i][j] = x.gates[kMuGate] * S[i][j] - x.gates[kGammaGate] * f.Delta[i][j];
      if (x.given[kLamGate]) f.Z[i][j] = Soft(f.Z[i][j], x.gates[kGammaGate] * x.gates[kLamGate]);
    }
    f.den[i] = Denominator(x, f, i);
    f.beta[i] = f.s[i] / f.den[i];
  }
  return f;
}

// S_new,i = beta_i Z_i.
template <typename T>
Matrix<T> Rescaled(const Named<T>& f) {
  Matrix<T> S_new = f.Z;
  for (int64_t i = 0; i < S_new.M(); ++i) {
    for (int64_t j = 0; j < S_new.D(); ++j) S_new[i][j] *= f.beta[i];
  }
  return S_new;
}

template <Objective kObjective, typename T>
void LatticeStep(const ReferenceToken<T>& x, const T* S, T* S_new, T* y) {
  const Matrix<T> out = Rescaled(Compute<kObjective>(x, Matrix<T>(x.M, x.D, S)));
  const Vector<T> read = Mix(x.q, out);
  out.CopyTo(S_new);
  std::copy(read.begin(), read.end(), y);
}

// Gradients of the intermediate values.
template <typename T>
struct NamedGrad {
  Vector<T> ds, da, dc, dch;  // [M]
  Vector<T> dh;               // [D]
  Matrix<T> dPhi, dZ;         // [M,D]
};

// From dS_new to dZ: the adjoint of the scaling by beta, and of the shrinkage where there is one.
template <typename T>
void RescaleAdjoint(const ReferenceToken<T>& x, const Named<T>& f, const Matrix<T>& dS_new, NamedGrad<T>& b,
                    ReferenceGrad<T>& g) {
  const T mu = x.gates[kMuGate], gamma = x.gates[kGammaGate];
  for (int64_t i = 0; i < x.M; ++i) {
    const T s = f.s[i], a = f.a[i], ch = f.ch[i], den = f.den[i], beta = f.beta[i];
    for (int64_t j = 0; j < x.D; ++j) b.dZ[i][j] = beta * dS_new[i][j];
    if (x.normalize == Normalize::kNone) continue;
    const T dbeta = Dot(dS_new[i], f.Z[i], x.D);
    b.ds[i] += dbeta / den;
    if (x.given[kLamGate]) {
      for (int64_t j = 0; j < x.D; ++j) b.dZ[i][j] -= dbeta * s / (den * den) * f.Z[i][j] / den;
      continue;
    }
    const T dd = T(-0.5) * dbeta * beta / (den * den);
    b.ds[i] += 2 * mu * mu * s * dd;
    g.dgates[kMuGate] += 2 * mu * dd * s * s;
    g.dgates[kGammaGate] += 2 * gamma * dd * f.dsq[i];
    const T e = f.dsq[i] > 0 ? gamma * gamma * dd : T(0);
    b.dch[i] += 2 * ch * (f.hh - a * a) * e;
    b.da[i] -= 2 * a * ch * ch * e;
    for (int64_t j = 0; j < x.D; ++j) b.dh[j] += 2 * f.h[j] * ch * ch * e;
  }
  if (!x.given[kLamGate]) return;
  T dthreshold = 0;
  for (int64_t i = 0; i < x.M; ++i) {
    for (int64_t j = 0; j < x.D; ++j) {
      const T z = f.Z[i][j];
      if (z == 0) b.dZ[i][j] = 0;
      dthreshold -= z > 0 ? b.dZ[i][j] : z < 0 ? -b.dZ[i][j] : T(0);
    }
  }
  g.dgates[kGammaGate] += dthreshold * x.gates[kLamGate];
  g.dgates[kLamGate] += dthreshold * gamma;
}

// The adjoint of Z = mu S - gamma Delta, Delta_i = ch_i U_i, U_i = h - a_i Phi_i, a_i = <Phi_i, h>.
template <typename T>
void UpdateAdjoint(const ReferenceToken<T>& x, const Named<T>& f, const Matrix<T>& S, NamedGrad<T>& b,
                   Matrix<T>& dS, ReferenceGrad<T>& g) {
  for (int64_t i = 0; i < x.M; ++i) {
    for (int64_t j = 0; j < x.D; ++j) {
      const T dZ = b.dZ[i][j], dDelta = -x.gates[kGammaGate] * dZ, dU = f.ch[i] * dDelta;
      g.dgates[kMuGate] += dZ * S[i][j];
      g.dgates[kGammaGate] -= dZ * f.Delta[i][j];
      dS[i][j] += x.gates[kMuGate] * dZ;
      b.dch[i] += dDelta * f.U[i][j];
      b.dh[j] += dU;
      b.da[i] -= dU * f.Phi[i][j];
      b.dPhi[i][j] -= f.a[i] * dU;
    }
  }
  const Vector<T> from_a = Mix(b.da.data(), f.Phi);
  for (int64_t j = 0; j < x.D; ++j) b.dh[j] += from_a[j];
  AddOuter(T(1), b.da.data(), f.h.data(), b.dPhi);
  for (int64_t i = 0; i < x.M; ++i) {
    b.dc[i] += b.dch[i] / f.s[i];
    b.ds[i] -= b.dch[i] * f.ch[i] / f.s[i];
  }
}

// The adjoint of h and c: from dh and dc to dk, dv and dPhi.
template <Objective kObjective, typename T>
void TargetAdjoint(const ReferenceToken<T>& x, const Named<T>& f, NamedGrad<T>& b, ReferenceGrad<T>& g) {
  const bool dec = kObjective == Objective::kDec, enc = kObjective == Objective::kEnc;
  const Vector<T> Phi_dh = RowDots(f.Phi, b.dh.data()), dc_Phi = Mix(b.dc.data(), f.Phi);
  for (int64_t i = 0; i < x.M; ++i) g.dk[i] += enc ? -b.dc[i] : b.dc[i] + (dec ? Phi_dh[i] : T(0));
  for (int64_t j = 0; j < x.D; ++j) g.dv[j] += enc ? b.dh[j] + dc_Phi[j] : -b.dh[j];
  if (dec) AddOuter(T(1), x.k, b.dh.data(), b.dPhi);
  if (enc) AddOuter(T(1), b.dc.data(), x.v, b.dPhi);
}

// The adjoint of s_i = sqrt(|S_i|^2 + eps^2) and Phi_i = S_i / s_i.
template <typename T>
void DirectionAdjoint(const ReferenceToken<T>& x, const Named<T>& f, const Matrix<T>& S, NamedGrad<T>& b,
                      Matrix<T>& dS) {
  for (int64_t i = 0; i < x.M; ++i) {
    b.ds[i] -= Dot(b.dPhi[i], f.Phi[i], x.D) / f.s[i];
    for (int64_t j = 0; j < x.D; ++j) {
      dS[i][j] += b.dPhi[i][j] / f.s[i] + b.ds[i] * S[i][j] / f.s[i];
    }
  }
}

template <Objective kObjective, typename T>
void LatticeAdjoint(const ReferenceToken<T>& x, const T* state, const T* dstate_new, const T* dy, T* dstate,
                    ReferenceGrad<T>& g) {
  const Matrix<T> S(x.M, x.D, state);
  Matrix<T> dS_new(x.M, x.D, dstate_new), dS(x.M, x.D);
  const Named<T> f = Compute<kObjective>(x, S);
  const Vector<T> dq = RowDots(Rescaled(f), dy);
  std::copy(dq.begin(), dq.end(), g.dq);
  AddOuter(T(1), x.q, dy, dS_new);

  const Vector<T> m(x.M);
  NamedGrad<T> b{m, m, m, m, Vector<T>(x.D), dS, dS};
  RescaleAdjoint(x, f, dS_new, b, g);
  UpdateAdjoint(x, f, S, b, dS, g);
  TargetAdjoint<kObjective>(x, f, b, g);
  DirectionAdjoint(x, f, S, b, dS);
  dS.CopyTo(dstate);
}

}  // namespace

template <typename T>
void AddLatticeReferences(ReferenceTable<T>& table) {
  table["lattice_dec"] = {LatticeStep<Objective::kDec, T>, LatticeAdjoint<Objective::kDec, T>};
  table["lattice_enc"] = {LatticeStep<Objective::kEnc, T>, LatticeAdjoint<Objective::kEnc, T>};
  table["lattice_sim"] = {LatticeStep<Objective::kSim, T>, LatticeAdjoint<Objective::kSim, T>};
}

template void AddLatticeReferences(ReferenceTable<float>&);
template void AddLatticeReferences(ReferenceTable<double>&);

}  // namespace lattice::kernels
