#include "kernels/dense/pointwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/dense/swiglu.h"
#include "kernels/isa.h"

namespace lattice::kernels {
namespace {

class Pointwise : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SetIsa(GetParam()); }
  void TearDown() override { SetIsa(AvailableIsas().back()); }

  static std::vector<float> Draw(uint64_t seed, size_t n, float deviation) {
    std::vector<float> x(n);
    Random(seed).FillNormal(x, 0, deviation);
    return x;
  }
};
INSTANTIATE_TEST_SUITE_P(Isa, Pointwise, testing::ValuesIn(AvailableIsas()));

TEST_P(Pointwise, FunctionsOfOneElement) {
  const std::vector<float> a = Draw(1, 77, 4), b = Draw(2, 77, 1);
  std::vector<float> sum = b, silu = a, gelu = b, power = a;
  AddTo(a.data(), 77, sum.data());
  SiluInPlace(silu.data(), 77);
  GeluTimes(a.data(), 77, gelu.data());
  SigmoidPower(power.data(), 77, 1.0f / 16);
  for (size_t i = 0; i < 77; ++i) {
    const double x = a[i];
    EXPECT_FLOAT_EQ(sum[i], a[i] + b[i]);
    EXPECT_NEAR(silu[i], x / (1 + std::exp(-x)), 2e-6);
    EXPECT_NEAR(gelu[i], x * (1 + std::erf(x / std::sqrt(2.0))) / 2 * b[i], 4e-6);
    EXPECT_NEAR(power[i], std::pow(1 / (1 + std::exp(-x)), 1.0 / 16), 1e-6);
  }
}

// Rows may be given to one call or to several: 7 rows of 11 elements, no whole number of vectors.
TEST_P(Pointwise, AnyDivisionIntoCallsIsBitEqual) {
  const std::vector<float> a = Draw(1, 77, 4), b = Draw(2, 77, 1), dy = Draw(3, 77, 1);
  const auto run = [&](int64_t n) {
    std::vector<float> silu = a, gelu = b, power = a, swiglu = b, da(77, NAN), db(77, NAN);
    for (int64_t i = 0; i < 77; i += n) {
      SiluInPlace(silu.data() + i, n);
      GeluTimes(a.data() + i, n, gelu.data() + i);
      SigmoidPower(power.data() + i, n, 1.0f / 16);
      SwiGluForward(a.data() + i, swiglu.data() + i, n, swiglu.data() + i);
      SwiGluBackward(a.data() + i, b.data() + i, dy.data() + i, n, da.data() + i, db.data() + i);
    }
    return std::vector{silu, gelu, power, swiglu, da, db};
  };
  EXPECT_EQ(run(77), run(11));
}

TEST_P(Pointwise, LayerNorm) {
  std::vector<float> x = Draw(1, 45, 3);
  const std::vector<float> before = x, w = Draw(2, 45, 1), b = Draw(3, 45, 1);
  LayerNormRow(x.data(), w.data(), b.data(), 45, 1e-5f);
  double mean = 0, variance = 0;
  for (const float v : before) mean += v / 45.0;
  for (const float v : before) variance += (v - mean) * (v - mean) / 45;
  for (size_t i = 0; i < 45; ++i)
    EXPECT_NEAR(x[i], (before[i] - mean) / std::sqrt(variance + 1e-5) * w[i] + b[i], 2e-5);
}

// The mean of these is 1/2 if the halves of a vector are added, as on x86 and in web pages, 0 if NEON adds neighbours first,
// and 1/4 one after the other, as with vectors of one lane, which scalar has where GCC is older than 12.3.
TEST_P(Pointwise, LanesAreAddedInOneOrder) {
  std::vector<float> x = {1e8f, 1, -1e8f, 1};
  const std::vector<float> weight(4, 1e8f), bias(4, 0);
  LayerNormRow(x.data(), weight.data(), bias.data(), 4, 0);
  const bool neon = GetParam().starts_with("neon"), one_lane = GetParam() == "scalar" && x[1] > 1;
  EXPECT_NEAR(x[1], (neon ? 2.0 : one_lane ? 1.5 : 1.0) * std::sqrt(0.5), 1e-4);
}

}  // namespace
}  // namespace lattice::kernels
