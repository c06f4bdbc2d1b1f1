// Every column of a row is computed and rounded the same way, whether it falls into a whole vector or into the last,
// partial one: columns that hold the same inputs give the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/dense/gated_norm.h"
#include "kernels/dense/softmax_loss.h"
#include "kernels/isa.h"

namespace lattice::kernels {
namespace {

// 16 columns fill whole vectors of every instruction set; the columns after them repeat the first ones.
constexpr int64_t kWhole = 16, kColumns = 27;

std::vector<float> Repeating(uint64_t seed) {
  std::vector<float> x(kColumns);
  Random(seed).FillNormal(x, 0, 2);
  for (int64_t i = kWhole; i < kColumns; ++i) x[static_cast<size_t>(i)] = x[static_cast<size_t>(i - kWhole)];
  return x;
}

void ExpectRepeats(const std::vector<float>& y, const char* what) {
  for (int64_t i = kWhole; i < kColumns; ++i) {
    const float first = y[static_cast<size_t>(i - kWhole)], again = y[static_cast<size_t>(i)];
    EXPECT_TRUE(std::isfinite(again)) << what << ", column " << i;
    EXPECT_EQ(first, again) << what << ", column " << i;
  }
}

class Columns : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SetIsa(GetParam()); }
  void TearDown() override { SetIsa(AvailableIsas().back()); }
};
INSTANTIATE_TEST_SUITE_P(Isa, Columns, testing::ValuesIn(AvailableIsas()));

TEST_P(Columns, GatedNorm) {
  const std::vector<float> x = Repeating(1), gate = Repeating(2), weight = Repeating(3), bias = Repeating(4),
                           dy = Repeating(5);
  std::vector<float> y(kColumns, NAN), dx(kColumns, NAN), dgate(kColumns, NAN), partial(2 * kColumns, NAN);
  GatedNorm<float> p;
  p.rows = 1;
  p.width = kColumns;
  p.eps = 1e-5f;
  p.x = x.data();
  p.gate = gate.data();
  p.weight = weight.data();
  p.bias = bias.data();
  p.dy = dy.data();
  p.y = y.data();
  p.dx = dx.data();
  p.dgate = dgate.data();
  p.partial = partial.data();
  GatedNormForward(p, 0, p.Tiles());
  GatedNormBackward(p, 0, p.Tiles());
  ExpectRepeats(y, "y");
  ExpectRepeats(dx, "dx");
  ExpectRepeats(dgate, "dgate");
  ExpectRepeats({partial.begin(), partial.begin() + kColumns}, "dweight");
  ExpectRepeats({partial.begin() + kColumns, partial.end()}, "dbias");
}

TEST_P(Columns, SoftmaxLoss) {
  std::vector<float> logits = Repeating(1);
  const std::vector<float> before = logits;
  const int64_t target = 12;  // not among the repeated columns
  float loss = NAN;
  SoftmaxLoss(logits.data(), &target, 1, kColumns, 1.0f, &loss);
  double sum = 0;
  for (const float x : before) sum += std::exp(static_cast<double>(x));
  EXPECT_NEAR(loss, std::log(sum) - before[12], 1e-5);
  ExpectRepeats(logits, "gradient");
}

}  // namespace
}  // namespace lattice::kernels
