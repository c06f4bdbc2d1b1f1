#include "compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"

namespace lattice::differential {
namespace {

using namespace kernels;

// What a result may differ by, and the float64 reference itself.
//
// As in kernels/contract/reference_test.cc an error is compared with what the plain loops lose themselves. Hostile
// problems can be ill-conditioned in ways that those loops happen to survive, so that the second measure is how far the
// reference follows when all inputs are shifted by a rounding error.
//
// A problem that loses half of the digits of float64 loses them differently in every order of computation, and what it
// loses cannot be told exactly: then three digits must agree. Where even these are lost, in a slot that was forgotten
// entirely and divides by eps, there is nothing to compare, in no result of the problem.
struct Allowed {
  double in_f32 = 0, in_f64 = 0;
  double scale = 1;  // of the result
  bool f32_overflows = false;

  void Settle() {
    if (in_f64 > 1e-9 * scale) in_f64 = std::max(in_f64, 1e-3 * scale);
  }
  bool Comparable(bool f32) const {
    return f32 ? !f32_overflows && in_f32 <= 1e-2 * scale : in_f64 <= 1e-2 * scale;
  }
};

struct Expected {
  Results<double> want;
  std::map<std::string, Allowed> allowed;

  bool Comparable(bool f32) const {
    return std::all_of(allowed.begin(), allowed.end(),
                       [&](const auto& entry) { return entry.second.Comparable(f32); });
  }
};

constexpr double kRounding32 = 0x1p-24, kRounding64 = 0x1p-53;
constexpr double kShift64 = 0x1p-48;  // large enough that the difference is more than rounding
constexpr double kLossMultiple = 20, kShiftMultiple = 100;

template <typename T, typename U, class Visit>
void ForEachPair(const Tensor<T>& a, const Tensor<U>& b, const Visit& visit) {
  a.ForEach([&](int64_t n, int64_t t, int64_t h, int64_t i) {
    const T x = a.At(n, t, h, i);
    const U y = b.At(n, t, h, i);
    if (!(Tensor<T>::IsPoison(x) && Tensor<U>::IsPoison(y)))
      visit(static_cast<double>(x), static_cast<double>(y));
  });
}

// The largest difference between finite elements.
template <typename T, typename U>
double FiniteDifference(const Tensor<T>& a, const Tensor<U>& b) {
  double largest = 0;
  ForEachPair(a, b, [&](double x, double y) {
    if (std::isfinite(x) && std::isfinite(y)) largest = std::max(largest, std::abs(x - y));
  });
  return largest;
}

template <typename T>
bool HasNonFinite(const Tensor<T>& x) {
  bool found = false;
  x.ForEach([&](int64_t n, int64_t t, int64_t h, int64_t i) {
    const T value = x.At(n, t, h, i);
    found |= !std::isfinite(value) && !Tensor<T>::IsPoison(value);
  });
  return found;
}

// The largest product of an input and its gradient: of this size are the terms that gradients are sums of, however small
// the sum is where they cancel.
double TermSize(const Case<double>& c, const Results<double>& want) {
  double largest = 0;
  for (const auto& [name, grad] : want.grads)
    largest = std::max(largest, MaxAbs(c.in.at(name)) * MaxAbs(grad));
  return largest;
}

// The size that errors of a result are compared with. Values and gradients of ordinary problems are of the order of one.
double ScaleOf(const std::string& name, const Case<double>& c, double terms, const Tensor<double>& want) {
  const double size = std::max(1.0, MaxAbs(want));
  if (!name.starts_with("d")) return size;
  const double input = MaxAbs(c.in.at(name.substr(1)));
  return input > 0 ? std::max(size, terms / input) : size;
}

Expected Expect(const RandomProblem& problem) {
  const Case<double> c = MakeProblem<double>(problem);
  Expected expected{.want = RunReference(c), .allowed = {}};
  const double terms = TermSize(c, expected.want);
  const Results<float> rounded = RunReference(MakeProblem<float>(problem));
  const Results<double> shifted = RunReference(MakeProblem<double>(problem, kShift64));
  const double floor = problem.shape.D == 1 ? 5e-4 : 5e-5;
  ForEachResult(rounded, expected.want, [&](const std::string& name, const auto& f32, const auto& want) {
    Allowed& allowed = expected.allowed[name];
    const double scale = ScaleOf(name, c, terms, want), loss = kLossMultiple * FiniteDifference(f32, want);
    allowed.scale = scale;
    allowed.in_f32 = std::max(floor * scale, loss);
    allowed.in_f64 = std::max(1e-10 * scale, loss * kRounding64 / kRounding32);
    allowed.f32_overflows = HasNonFinite(f32) || problem.hostility.extreme;
  });
  ForEachResult(shifted, expected.want, [&](const std::string& name, const auto& moved, const auto& want) {
    Allowed& allowed = expected.allowed[name];
    const double follows = kShiftMultiple * FiniteDifference(moved, want) / kShift64;
    allowed.in_f32 = std::max(allowed.in_f32, follows * kRounding32);
    allowed.in_f64 = std::max(allowed.in_f64, follows * kRounding64);
    allowed.Settle();
  });
  return expected;
}

// The largest error. Infinite where one is finite and the other is not; whether infinity or NaN does not matter.
template <typename T>
double Error(const Tensor<T>& got, const Tensor<double>& want) {
  double error = 0;
  ForEachPair(got, want, [&](double g, double w) {
    if (std::isfinite(g) != std::isfinite(w)) error = INFINITY;
    if (std::isfinite(g) && std::isfinite(w)) error = std::max(error, std::abs(g - w));
  });
  return error;
}

// With shrinkage a gradient jumps where an element meets the threshold, and rounding moves some element across. That
// changes a few elements, not all: errors are then measured in the Euclidean norm, as in reference_test.cc.
template <typename T>
double ErrorOf(const Variant& variant, const std::string& name, const Tensor<T>& got,
               const Tensor<double>& want) {
  const double error = Error(got, want);
  const bool jumps = variant.shrinks && name.starts_with("d") && sizeof(T) == 4;
  return jumps && std::isfinite(error) ? std::min(error, 1e-2 * RelativeError(got, want)) : error;
}

template <typename T>
void CompareOne(const RandomProblem& problem, const std::string& isa, const Expected& expected, bool spoil,
                Comparison& comparison) {
  Results<T> got = RunKernels(MakeProblem<T>(problem));
  if (spoil) {
    T& element = got.grads.at("state").At(0, 0, 0, 0);
    element += static_cast<T>(1e-2 * std::max(1.0, MaxAbs(got.grads.at("state"))));
  }
  if (!expected.Comparable(sizeof(T) == 4)) {
    comparison.skipped += static_cast<int64_t>(expected.allowed.size());
    return;
  }
  ForEachResult(got, expected.want, [&](const std::string& name, const auto& x, const auto& want) {
    const Allowed& allowed = expected.allowed.at(name);
    ++comparison.tensors;
    const double bound = sizeof(T) == 4 ? allowed.in_f32 : allowed.in_f64;
    const double error = ErrorOf(problem.variant, name, x, want);
    comparison.largest = std::max(comparison.largest, error / bound);
    if (error <= bound) return;
    comparison.disagreements.push_back(StrCat(name, " in float", 8 * sizeof(T), " under ", isa, ": error ",
                                              error, ", allowed ", bound, ", largest value ", MaxAbs(want)));
  });
}

}  // namespace

Comparison Compare(const RandomProblem& problem, bool spoil) {
  const Expected expected = Expect(problem);
  Comparison comparison;
  ForEachIsa([&](const std::string& isa) {
    CompareOne<double>(problem, isa, expected, spoil, comparison);
    CompareOne<float>(problem, isa, expected, spoil, comparison);
  });
  return comparison;
}

}  // namespace lattice::differential
