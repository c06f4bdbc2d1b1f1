// Tensors for kernel tests: they lie in a larger buffer, so that writes outside of their elements are
// detected. Only for tests.
#ifndef LATTICE_KERNELS_CONTRACT_TEST_TENSOR_H_
#define LATTICE_KERNELS_CONTRACT_TEST_TENSOR_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "kernels/problem.h"

namespace lattice::kernels {

// Memory aligned to 64 bytes, as torch allocates it, which the kernels use in place.
template <typename T>
struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <typename U>
  Aligned(const Aligned<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlign)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlign); }
  bool operator==(const Aligned&) const { return true; }

  static constexpr std::align_val_t kAlign{64};
};

// How [B,T,H,X] lies in memory. The last dimension is always contiguous.
enum class Layout {
  kDense,
  kGaps,       // unused elements after every row, token and batch row
  kHeadsFirst  // [B,H,T,X]
};

// [B,T,H,X]. A new tensor holds Poison everywhere, in the gaps too.
template <typename T>
class Tensor {
 public:
  Tensor() = default;
  Tensor(int64_t B, int64_t length, int64_t H, int64_t X, Layout layout)
      : B_(B), length_(length), H_(H), X_(X) {
    const int64_t gap = layout == Layout::kGaps ? 3 : 0;
    if (layout == Layout::kHeadsFirst) {
      time_ = X, head_ = length * X, batch_ = H * length * X;
    } else {
      head_ = X + gap, time_ = H * head_ + 2 * gap, batch_ = length * time_ + gap;
    }
    data_.assign(B * batch_, Poison());
  }

  // A NaN with a bit pattern that arithmetic does not produce.
  static T Poison() {
    if constexpr (sizeof(T) == 4) {
      return std::bit_cast<float>(0x7FC0BEEF);
    } else {
      return std::bit_cast<double>(0x7FF8DEADBEEF0000);
    }
  }
  static bool IsPoison(T x) {
    const T poison = Poison();
    return std::memcmp(&x, &poison, sizeof(T)) == 0;
  }

  int64_t B() const { return B_; }
  int64_t length() const { return length_; }
  int64_t H() const { return H_; }
  int64_t X() const { return X_; }
  bool empty() const { return data_.empty(); }

  T& At(int64_t b, int64_t t, int64_t h, int64_t x) { return data_[b * batch_ + t * time_ + h * head_ + x]; }
  const T& At(int64_t b, int64_t t, int64_t h, int64_t x) const {
    return const_cast<Tensor*>(this)->At(b, t, h, x);
  }
  T* data() { return data_.data(); }
  const T* data() const { return data_.data(); }
  View<T> view() { return {data_.data(), batch_, time_, head_}; }
  View<const T> view() const { return {data_.data(), batch_, time_, head_}; }

  // visit(b, t, h, x) in this order.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (int64_t b = 0; b < B_; ++b) {
      for (int64_t t = 0; t < length_; ++t) {
        for (int64_t h = 0; h < H_; ++h) {
          for (int64_t x = 0; x < X_; ++x) visit(b, t, h, x);
        }
      }
    }
  }

  std::vector<T> Values() const {
    std::vector<T> values;
    values.reserve(B_ * length_ * H_ * X_);
    ForEach([&](int64_t b, int64_t t, int64_t h, int64_t x) { values.push_back(At(b, t, h, x)); });
    return values;
  }

  // Whether nothing was written between the elements.
  bool GapsIntact() const {
    auto rest = data_;
    ForEach([&](int64_t b, int64_t t, int64_t h, int64_t x) {
      rest[b * batch_ + t * time_ + h * head_ + x] = Poison();
    });
    return std::all_of(rest.begin(), rest.end(), IsPoison);
  }

 private:
  int64_t B_ = 0, length_ = 0, H_ = 0, X_ = 0;
  int64_t batch_ = 0, time_ = 0, head_ = 0;
  std::vector<T, Aligned<T>> data_;
};

template <typename T>
using Tensors = std::map<std::string, Tensor<T>>;

// Whether all elements are equal bit for bit.
template <typename T>
bool SameBits(const Tensor<T>& a, const Tensor<T>& b) {
  const std::vector<T> x = a.Values(), y = b.Values();
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

// max |got - want|; infinite when one is not finite where the other is. Poison in both is agreement.
template <typename T, typename U>
double MaxError(const Tensor<T>& got, const Tensor<U>& want) {
  double error = 0;
  got.ForEach([&](int64_t b, int64_t t, int64_t h, int64_t x) {
    const T g = got.At(b, t, h, x);
    const U w = want.At(b, t, h, x);
    if (Tensor<T>::IsPoison(g) && Tensor<U>::IsPoison(w)) return;
    const double difference = std::abs(static_cast<double>(g) - static_cast<double>(w));
    error = std::isfinite(difference) ? std::max(error, difference) : INFINITY;
  });
  return error;
}

// |got - want| / max(1, |want|) in the Euclidean norm, without elements that are poison in both.
template <typename T, typename U>
double RelativeError(const Tensor<T>& got, const Tensor<U>& want) {
  double error = 0, norm = 0;
  got.ForEach([&](int64_t b, int64_t t, int64_t h, int64_t x) {
    const double g = got.At(b, t, h, x), w = want.At(b, t, h, x);
    if (Tensor<T>::IsPoison(got.At(b, t, h, x)) && Tensor<U>::IsPoison(want.At(b, t, h, x))) return;
    error += (g - w) * (g - w);
    norm += w * w;
  });
  return std::sqrt(error) / std::max(1.0, std::sqrt(norm));
}

// The sum of a * b over the elements, without those that are poison in one.
inline double Inner(const Tensor<double>& a, const Tensor<double>& b) {
  double sum = 0;
  a.ForEach([&](int64_t n, int64_t t, int64_t h, int64_t i) {
    const double x = a.At(n, t, h, i), y = b.At(n, t, h, i);
    if (!Tensor<double>::IsPoison(x) && !Tensor<double>::IsPoison(y)) sum += x * y;
  });
  return sum;
}

// max |x| of the finite elements.
template <typename T>
double MaxAbs(const Tensor<T>& x) {
  double largest = 0;
  for (const T value : x.Values()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  return largest;
}

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_CONTRACT_TEST_TENSOR_H_
