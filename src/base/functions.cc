// An argument is reduced to a small interval, exactly but for a rest that is kept, and the first terms of a power series do
// what remains: as many as there are before they are lost in the last place.
#include "base/functions.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lattice {
namespace {

// 2^n for normal results.
double PowerOf2(int n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); }

// The nearest integer for |x| < 2^51: numbers from 2^52 on have no fraction, and sums are rounded to the nearest.
double Nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// coefficients[0] + x coefficients[1] + x^2 coefficients[2] + ...
template <int kCount>
double Polynomial(double x, const double (&coefficients)[kCount]) {
  double sum = coefficients[kCount - 1];
  for (int i = kCount - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

// 1 / n!
constexpr double OverFactorial(int n) {
  double product = 1;  // exact up to 18!
  for (int i = 2; i <= n; ++i) product *= i;
  return 1 / product;
}

// log 2 and pi / 2 in parts. The first ones end early, so that their products with small integers are exact; the last is what
// they leave.
constexpr double kLog2[] = {0x1.62e42fefa3p-1, 0x1.3de6af278ece6p-42};
constexpr double kHalfPi[] = {0x1.921fb544p+0, 0x1.0b4611a4p-34, 0x1.13198a2e03707p-65};

// sin(x + rest) and cos(x + rest) for |x| up to pi/4 and a rest far below it.
double SineNearZero(double x, double rest) {
  constexpr double kTerms[] = {-OverFactorial(3),  OverFactorial(5),  -OverFactorial(7),  OverFactorial(9),
                               -OverFactorial(11), OverFactorial(13), -OverFactorial(15), OverFactorial(17)};
  const double square = x * x;
  return x + (x * square * Polynomial(square, kTerms) + rest * (1 - square / 2));
}

double CosineNearZero(double x, double rest) {
  constexpr double kTerms[] = {OverFactorial(4),  -OverFactorial(6),  OverFactorial(8),  -OverFactorial(10),
                               OverFactorial(12), -OverFactorial(14), OverFactorial(16), -OverFactorial(18)};
  const double square = x * x, half = square / 2, first = 1 - half;
  const double lost = (1 - first) - half;
  return first + (lost + (square * square * Polynomial(square, kTerms) - x * rest));
}

}  // namespace

double Exp(double x) {
  constexpr double kTerms[] = {OverFactorial(2),  OverFactorial(3),  OverFactorial(4),  OverFactorial(5),
                               OverFactorial(6),  OverFactorial(7),  OverFactorial(8),  OverFactorial(9),
                               OverFactorial(10), OverFactorial(11), OverFactorial(12), OverFactorial(13),
                               OverFactorial(14)};
  if (std::isnan(x)) return x;
  if (x > 709.782712893383973096) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  // x = n log 2 + r + rest, |r| up to log(2) / 2
  const double n = Nearest(x / (kLog2[0] + kLog2[1]));
  const double high = x - n * kLog2[0], low = n * kLog2[1];
  const double r = high - low, rest = (high - r) - low;
  const double y = 1 + (r + (r * r * Polynomial(r, kTerms) + rest));
  // In two factors, because the power alone may be too large or too small for a float64.
  const int exponent = static_cast<int>(n), half = exponent / 2;
  return y * PowerOf2(half) * PowerOf2(exponent - half);
}

double Log(double x) {
  constexpr double kTerms[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                               2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(x)) return x;
  // x = 2^exponent (1 + f) with 1 + f between sqrt(1/2) and sqrt 2.
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752440) m *= 2, --exponent;
  const double f = m - 1, s = f / (2 + f), square = s * s;
  // log(1 + f) = 2 s + 2 s^3 / 3 + 2 s^5 / 5 + ..., and 2 s = f - f^2 / 2 + s f^2 / 2, whose first term is exact.
  const double half = 0.5 * f * f, series = s * (half + square * Polynomial(square, kTerms));
  return exponent * kLog2[0] + (f - (half - (series + exponent * kLog2[1])));
}

double Log1p(double x) {
  const double u = 1 + x;
  // What u lacks of 1 + x changes log u in proportion.
  if (u == 1 || !std::isfinite(u)) return u == 1 ? x : Log(u);
  return Log(u) * (x / (u - 1));
}

double Power(double x, double y) { return Exp(y * Log(x)); }

SineCosine SineAndCosine(double angle) {
  if (!(std::abs(angle) < 0x1p20 * 1.5)) return {std::sin(angle), std::cos(angle)};
  // angle = n pi/2 + x + rest
  const double n = Nearest(angle / (kHalfPi[0] + kHalfPi[1]));
  const double high = angle - n * kHalfPi[0], second = n * kHalfPi[1], middle = high - second;
  const double lost = (high - middle) - second, third = n * kHalfPi[2] - lost;
  const double x = middle - third, rest = (middle - x) - third;
  const double sine = SineNearZero(x, rest), cosine = CosineNearZero(x, rest);
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace lattice
