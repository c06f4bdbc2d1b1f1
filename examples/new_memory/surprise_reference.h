// The equations of the example as plain loops: the reference with which tests compare its kernels.
//   e = k@S - v     r = |e|^2     n = r / (1 + r)     S_new = S - gamma n k e^T     y = q@S_new
#ifndef LATTICE_EXAMPLES_NEW_MEMORY_SURPRISE_REFERENCE_H_
#define LATTICE_EXAMPLES_NEW_MEMORY_SURPRISE_REFERENCE_H_

#include <algorithm>

#include "kernels/reference/math.h"
#include "kernels/reference/reference.h"

namespace lattice::kernels {

template <typename T>
struct Surprise {
  Vector<T> e;
  T r, n;
  Matrix<T> S_new;

  Surprise(const ReferenceToken<T>& x, const Matrix<T>& S) : e(Mix(x.k, S)), S_new(S) {
    for (int64_t j = 0; j < x.D; ++j) e[j] -= x.v[j];
    r = Dot(e.data(), e.data(), x.D);
    n = r / (1 + r);
    AddOuter(-x.gates[0] * n, x.k, e.data(), S_new);
  }
};

template <typename T>
void SurpriseStep(const ReferenceToken<T>& x, const T* S, T* S_new, T* y) {
  const Surprise<T> f(x, Matrix<T>(x.M, x.D, S));
  const Vector<T> read = Mix(x.q, f.S_new);
  f.S_new.CopyTo(S_new);
  std::copy(read.begin(), read.end(), y);
}

template <typename T>
void SurpriseAdjoint(const ReferenceToken<T>& x, const T* state, const T* dS_new, const T* dy, T* dS,
                     ReferenceGrad<T>& g) {
  const Matrix<T> S(x.M, x.D, state);
  const Surprise<T> f(x, S);
  const Vector<T> dq = RowDots(f.S_new, dy);
  std::copy(dq.begin(), dq.end(), g.dq);
  Matrix<T> G(x.M, x.D, dS_new);  // the gradient of S_new: from later tokens, and from y
  AddOuter(T(1), x.q, dy, G);

  const Vector<T> k_G = Mix(x.k, G), G_e = RowDots(G, f.e.data());
  const T k_G_e = Dot(x.k, G_e.data(), x.M);
  g.dgates[0] = -f.n * k_G_e;
  const T dn = -x.gates[0] * k_G_e, dr = dn / ((1 + f.r) * (1 + f.r));
  Vector<T> de(x.D);
  for (int64_t j = 0; j < x.D; ++j) {
    de[j] = -x.gates[0] * f.n * k_G[j] + 2 * dr * f.e[j];
    g.dv[j] = -de[j];
  }
  const Vector<T> S_de = RowDots(S, de.data());
  for (int64_t i = 0; i < x.M; ++i) g.dk[i] = S_de[i] - x.gates[0] * f.n * G_e[i];
  AddOuter(T(1), x.k, de.data(), G);
  G.CopyTo(dS);
}

}  // namespace lattice::kernels

#endif  // LATTICE_EXAMPLES_NEW_MEMORY_SURPRISE_REFERENCE_H_
