// The methods and polynomials of Sun's fdlibm: an argument is reduced to a small interval, exactly but for a rest that is
// kept, and a polynomial does the rest.
#include "base/functions.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lattice {
namespace {

// log 2 in two parts. The first has 32 bits, so that its products with exponents are exact.
constexpr double kLog2High = 6.93147180369123816490e-01, kLog2Low = 1.90821492927058770002e-10;

// 2^n for normal results.
double PowerOf2(int n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); }

// The nearest integer for |x| < 2^51: numbers from 2^52 on have no fraction, and sums are rounded to the nearest.
double Nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// x^0 coefficients[0] + x^1 coefficients[1] + ...
template <int kCount>
double Polynomial(double x, const double (&coefficients)[kCount]) {
  double sum = coefficients[kCount - 1];
  for (int i = kCount - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

// sin(x + rest) and cos(x + rest) for |x| up to pi/4 and a rest far below it.
double SineNearZero(double x, double rest) {
  constexpr double kFirst = -1.66666666666666324348e-01;
  constexpr double kOthers[] = {8.33333333332248946124e-03, -1.98412698298579493134e-04,
                                2.75573137070700676789e-06, -2.50507602534068634195e-08,
                                1.58969099521155010221e-10};
  const double z = x * x, cube = z * x;
  return x - ((z * (0.5 * rest - cube * Polynomial(z, kOthers)) - rest) - cube * kFirst);
}

double CosineNearZero(double x, double rest) {
  constexpr double kTerms[] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                               2.48015872894767294178e-05, -2.75573143513906633035e-07,
                               2.08757232129817482790e-09, -1.13596475577881948265e-11};
  const double z = x * x, half = 0.5 * z, one = 1 - half;
  return one + (((1 - one) - half) + (z * z * Polynomial(z, kTerms) - x * rest));
}

}  // namespace

double Exp(double x) {
  constexpr double kLog2Inverse = 1.44269504088896338700;
  constexpr double kTerms[] = {1.66666666666666019037e-01, -2.77777777770155933842e-03,
                               6.61375632143793436117e-05, -1.65339022054652515390e-06,
                               4.13813679705723846039e-08};
  if (std::isnan(x)) return x;
  if (x > 709.782712893383973096) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  const double n = Nearest(x * kLog2Inverse);
  const double high = x - n * kLog2High, low = n * kLog2Low, r = high - low, square = r * r;
  const double c = r - square * Polynomial(square, kTerms);
  const double y = 1 - ((low - r * c / (2 - c)) - high);
  // In two factors, because the power alone may be too large or too small for a float64.
  const int exponent = static_cast<int>(n), half = exponent / 2;
  return y * PowerOf2(half) * PowerOf2(exponent - half);
}

double Log(double x) {
  constexpr double kTerms[] = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                               2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                               1.479819860511658591e-01};
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(x)) return x;
  // x = 2^exponent m with m between sqrt(1/2) and sqrt 2.
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752440) m *= 2, --exponent;
  const double f = m - 1, half = 0.5 * f * f, s = f / (2 + f), square = s * s;
  const double rest = s * (half + square * Polynomial(square, kTerms));
  return exponent * kLog2High - ((half - (rest + exponent * kLog2Low)) - f);
}

double Log1p(double x) {
  const double u = 1 + x;
  // What u lacks of 1 + x changes log u in proportion.
  if (u == 1 || !std::isfinite(u)) return u == 1 ? x : Log(u);
  return Log(u) * (x / (u - 1));
}

double Power(double x, double y) { return Exp(y * Log(x)); }

SineCosine SineAndCosine(double angle) {
  // pi/2 in parts of 33 bits, whose products with n are exact below 2^20, and what they leave.
  constexpr double kParts[] = {1.57079632673412561417e+00, 6.07710050630396597660e-11,
                               2.02226624871116645580e-21, 8.47842766036889956997e-32};
  constexpr double kInverse = 6.36619772367581382433e-01;
  const double n = Nearest(angle * kInverse);
  if (!(std::abs(angle) < 0x1p20 * 1.5)) return {std::sin(angle), std::cos(angle)};
  // The second product may be larger than what is left of the angle; x + rest is their difference.
  const double high = angle - n * kParts[0], second = n * kParts[1], middle = high - second;
  const double lost = (high - middle) - second, low = lost - n * kParts[2];
  const double x = middle + low, rest = ((middle - x) + low) - n * kParts[3];
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
