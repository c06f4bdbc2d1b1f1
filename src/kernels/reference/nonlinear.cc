// References of TTT and of the matrix memory of xLSTM, each with its adjoint below it.
#include <algorithm>
#include <cmath>

#include "kernels/reference/math.h"
#include "kernels/reference/rules.h"

namespace lattice::kernels {
namespace {

// Indices of the gates: gamma of ttt; input and forget gate of mlstm.
constexpr int kTttGamma = 0, kInput = 0, kForget = 1;

// ttt:   z = k@S     s = sqrt(|z|^2 + eps^2)     zh = z/s     e = zh - v     p = <zh,e>
//        u = (e - zh p)/s     S_new = S - gamma k u^T     eps = 1e-6
template <typename T>
struct Ttt {
  T s, p;
  Vector<T> zh, e, u;

  Ttt(const ReferenceToken<T>& x, const Matrix<T>& S) : zh(Mix(x.k, S)), e(x.D), u(x.D) {
    s = std::sqrt(Dot(zh.data(), zh.data(), x.D) + T(1e-12));
    for (T& z : zh) z /= s;
    for (int64_t j = 0; j < x.D; ++j) e[j] = zh[j] - x.v[j];
    p = Dot(zh.data(), e.data(), x.D);
    for (int64_t j = 0; j < x.D; ++j) u[j] = (e[j] - zh[j] * p) / s;
  }

  Matrix<T> Updated(const ReferenceToken<T>& x, const Matrix<T>& S) const {
    Matrix<T> S_new = S;
    AddOuter(-x.gates[kTttGamma], x.k, u.data(), S_new);
    return S_new;
  }
};

template <typename T>
void TttStep(const ReferenceToken<T>& x, const T* state, T* state_new, T* y) {
  const Matrix<T> S(x.M, x.D, state);
  const Matrix<T> S_new = Ttt<T>(x, S).Updated(x, S);
  const Vector<T> read = Mix(x.q, S_new);
  S_new.CopyTo(state_new);
  std::copy(read.begin(), read.end(), y);
}

// The gradient of z from that of u; adds the gradient of v to g.
template <typename T>
Vector<T> TttReadAdjoint(const ReferenceToken<T>& x, const Ttt<T>& f, const Vector<T>& du,
                         ReferenceGrad<T>& g) {
  T ds = -Dot(du.data(), f.u.data(), x.D) / f.s;
  const T dp = -Dot(du.data(), f.zh.data(), x.D) / f.s;
  Vector<T> dz(x.D);
  for (int64_t j = 0; j < x.D; ++j) {
    const T de = du[j] / f.s + dp * f.zh[j];
    const T dzh = -f.p * du[j] / f.s + dp * f.e[j] + de;
    g.dv[j] -= de;
    ds -= dzh * f.zh[j] / f.s;
    dz[j] = dzh / f.s;
  }
  for (int64_t j = 0; j < x.D; ++j) dz[j] += ds * f.zh[j];
  return dz;
}

template <typename T>
void TttAdjoint(const ReferenceToken<T>& x, const T* state, const T* dstate_new, const T* dy, T* dstate,
                ReferenceGrad<T>& g) {
  const Matrix<T> S(x.M, x.D, state);
  const Ttt<T> f(x, S);
  const Vector<T> dq = RowDots(f.Updated(x, S), dy);
  std::copy(dq.begin(), dq.end(), g.dq);
  Matrix<T> G(x.M, x.D, dstate_new);
  AddOuter(T(1), x.q, dy, G);

  const Vector<T> G_u = RowDots(G, f.u.data());
  Vector<T> du = Mix(x.k, G);
  for (T& value : du) value *= -x.gates[kTttGamma];
  const Vector<T> dz = TttReadAdjoint(x, f, du, g);
  const Vector<T> S_dz = RowDots(S, dz.data());
  for (int64_t i = 0; i < x.M; ++i) {
    g.dgates[kTttGamma] -= x.k[i] * G_u[i];
    g.dk[i] += S_dz[i] - x.gates[kTttGamma] * G_u[i];
  }
  AddOuter(T(1), x.k, dz.data(), G);
  G.CopyTo(dstate);
}

// mlstm:   decayed = logsig(f) + m     m' = max(decayed, i)     fe = exp(decayed - m')     ie = exp(i - m')
//          kh = k M^-1/2
//          S' = fe S + ie kh v^T     n' = fe n + ie kh     y = q@S' / den     den = max(|q.n'|, exp(-m'))
// The state is S [M,D], then n [M], then m.
template <typename T>
struct Mlstm {
  T decayed, m, fe, ie, qn, den;
  Vector<T> kh, n, y;
  Matrix<T> S;

  Mlstm(const ReferenceToken<T>& x, const T* state)
      : kh(x.k, x.k + x.M), n(state + x.M * x.D, state + x.M * x.D + x.M), S(x.M, x.D, state) {
    decayed = -std::log1p(std::exp(-x.gates[kForget])) + state[x.M * x.D + x.M];
    m = std::max(decayed, x.gates[kInput]);
    fe = std::exp(decayed - m);
    ie = std::exp(x.gates[kInput] - m);
    for (int64_t i = 0; i < x.M; ++i) {
      kh[i] /= std::sqrt(static_cast<T>(x.M));
      n[i] = fe * n[i] + ie * kh[i];
      for (int64_t j = 0; j < x.D; ++j) S[i][j] = fe * S[i][j] + ie * kh[i] * x.v[j];
    }
    qn = Dot(x.q, n.data(), x.M);
    den = std::max(std::abs(qn), std::exp(-m));
    y = Mix(x.q, S);
    for (T& value : y) value /= den;
  }
};

template <typename T>
void MlstmStep(const ReferenceToken<T>& x, const T* state, T* state_new, T* y) {
  const Mlstm<T> f(x, state);
  f.S.CopyTo(state_new);
  std::copy(f.n.begin(), f.n.end(), state_new + x.M * x.D);
  state_new[x.M * x.D + x.M] = f.m;
  std::copy(f.y.begin(), f.y.end(), y);
}

template <typename T>
void MlstmAdjoint(const ReferenceToken<T>& x, const T* state, const T* dstate_new, const T* dy, T* dstate,
                  ReferenceGrad<T>& g) {
  const Mlstm<T> f(x, state);
  const int64_t M = x.M, D = x.D;
  const T *n = state + M * D, *dn_new = dstate_new + M * D;
  const T scale = T(1) / std::sqrt(static_cast<T>(M));

  const T dden = -Dot(dy, f.y.data(), D) / f.den;
  const bool by_n = std::abs(f.qn) >= std::exp(-f.m);
  const T dqn = !by_n ? T(0) : f.qn < 0 ? -dden : dden;
  T dm_new = dstate_new[M * D + M] - (by_n ? T(0) : dden * std::exp(-f.m));

  T dfe = 0, die = 0;
  for (int64_t i = 0; i < M; ++i) {
    const T dn = dn_new[i] + dqn * x.q[i];
    T dkh = f.ie * dn;
    g.dq[i] += Dot(f.S[i], dy, D) / f.den + dqn * f.n[i];
    dfe += dn * n[i];
    die += dn * f.kh[i];
    dstate[M * D + i] = f.fe * dn;
    for (int64_t j = 0; j < D; ++j) {
      const T G = dstate_new[i * D + j] + x.q[i] * dy[j] / f.den;
      dfe += G * state[i * D + j];
      die += G * f.kh[i] * x.v[j];
      dkh += G * f.ie * x.v[j];
      g.dv[j] += G * f.ie * f.kh[i];
      dstate[i * D + j] = f.fe * G;
    }
    g.dk[i] += dkh * scale;
  }

  dm_new -= dfe * f.fe + die * f.ie;
  const bool from_forget = f.decayed >= x.gates[kInput];
  const T ddecayed = dfe * f.fe + (from_forget ? dm_new : T(0));
  g.dgates[kInput] += die * f.ie + (from_forget ? T(0) : dm_new);
  g.dgates[kForget] += ddecayed / (1 + std::exp(x.gates[kForget]));
  dstate[M * D + M] = ddecayed;
}

}  // namespace

template <typename T>
void AddNonlinearReferences(ReferenceTable<T>& table) {
  table["ttt"] = {TttStep<T>, TttAdjoint<T>};
  table["mlstm"] = {MlstmStep<T>, MlstmAdjoint<T>};
}

template void AddNonlinearReferences(ReferenceTable<float>&);
template void AddNonlinearReferences(ReferenceTable<double>&);

}  // namespace lattice::kernels
