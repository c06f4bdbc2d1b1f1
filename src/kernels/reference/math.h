// The few functions of linear algebra that the references use.
#ifndef LATTICE_KERNELS_REFERENCE_MATH_H_
#define LATTICE_KERNELS_REFERENCE_MATH_H_

#include <cstdint>
#include <vector>

namespace lattice::kernels {

template <typename T>
using Vector = std::vector<T>;

// [M,D] row by row: X[i][j].
template <typename T>
class Matrix {
 public:
  Matrix(int64_t M, int64_t D) : D_(D), x_(M * D) {}
  Matrix(int64_t M, int64_t D, const T* from) : D_(D), x_(from, from + M * D) {}

  int64_t M() const { return static_cast<int64_t>(x_.size()) / D_; }
  int64_t D() const { return D_; }
  T* operator[](int64_t i) { return x_.data() + i * D_; }
  const T* operator[](int64_t i) const { return x_.data() + i * D_; }

  void CopyTo(T* to) const {
    for (const T value : x_) *to++ = value;
  }

 private:
  int64_t D_;
  std::vector<T> x_;
};

template <typename T>
T Dot(const T* x, const T* y, int64_t n) {
  T sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += x[j] * y[j];
  return sum;
}

// X@h: <X_i, h> for every row.
template <typename T>
Vector<T> RowDots(const Matrix<T>& X, const T* h) {
  Vector<T> out(X.M());
  for (int64_t i = 0; i < X.M(); ++i) out[i] = Dot(X[i], h, X.D());
  return out;
}

// w@X: the weighted sum of the rows, sum_i w_i X_i.
template <typename T>
Vector<T> Mix(const T* w, const Matrix<T>& X) {
  Vector<T> out(X.D());
  for (int64_t i = 0; i < X.M(); ++i) {
    for (int64_t j = 0; j < X.D(); ++j) out[j] += w[i] * X[i][j];
  }
  return out;
}

// X += scale w h^T
template <typename T>
void AddOuter(T scale, const T* w, const T* h, Matrix<T>& X) {
  for (int64_t i = 0; i < X.M(); ++i) {
    for (int64_t j = 0; j < X.D(); ++j) X[i][j] += scale * w[i] * h[j];
  }
}

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_REFERENCE_MATH_H_
