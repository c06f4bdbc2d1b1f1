#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "kernels/isa.h"

namespace lattice::kernels {
namespace {

struct Case {
  WeightFormat format;
  int64_t rows, cols, count;
};

// Weights of a format, made from float32, and activations in both forms.
struct Operands {
  std::vector<float> w, x, scales, row_scales;
  std::vector<uint16_t> bf16;
  std::vector<int8_t> int8, high, low;
  std::vector<int64_t> sums;
  MatMul p;

  explicit Operands(const Case& c) : w(c.rows * c.cols), x(c.count * c.cols) {
    Random(1).FillNormal(w, 0, 0.3f);
    Random(2).FillNormal(x, 0, 2);
    p.w = {c.format, c.rows, c.cols, w.data(), nullptr};
    p.count = c.count;
    p.x = x.data();
    if (c.format == WeightFormat::kBf16) UseBf16();
    if (c.format == WeightFormat::kInt8) UseInt8();
  }
  void UseBf16() {
    bf16.resize(w.size());
    RoundToBf16(w.data(), static_cast<int64_t>(w.size()), bf16.data());
    WidenBf16(bf16.data(), static_cast<int64_t>(w.size()), w.data());
    p.w.data = bf16.data();
  }
  void UseInt8() {
    const int64_t stride = Int8Rows::Stride(p.w.cols);
    int8.resize(w.size());
    scales.resize(p.w.rows);
    for (int64_t r = 0; r < p.w.rows; ++r) {
      QuantizeWeights(&w[r * p.w.cols], p.w.cols, &int8[r * p.w.cols], &scales[r]);
      for (int64_t c = 0; c < p.w.cols; ++c) w[r * p.w.cols + c] = scales[r] * int8[r * p.w.cols + c];
    }
    p.w.data = int8.data();
    p.w.scales = scales.data();
    high.assign(p.count * stride, 99);
    low.assign(p.count * stride, 99);
    row_scales.resize(p.count);
    sums.resize(p.count);
    p.x8 = {high.data(), low.data(), row_scales.data(), sums.data()};
    QuantizeRows(p.x, p.w.cols, p.x8, 0, p.count);
  }
  std::vector<float> Compute(int64_t piece) {
    std::vector<float> y(p.count * p.w.rows, NAN);
    p.y = y.data();
    for (int64_t first = 0; first < p.w.rows; first += piece)
      MatMulRows(p, first, std::min(p.w.rows, first + piece));
    return y;
  }
  double Exact(int64_t m, int64_t r) const {
    double sum = 0;
    for (int64_t c = 0; c < p.w.cols; ++c) sum += double{w[r * p.w.cols + c]} * x[m * p.w.cols + c];
    return sum;
  }
};

class MatMulOfIsa : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SetIsa(GetParam()); }
  void TearDown() override { SetIsa(AvailableIsas().back()); }
};
INSTANTIATE_TEST_SUITE_P(Isa, MatMulOfIsa, testing::ValuesIn(AvailableIsas()));

TEST_P(MatMulOfIsa, ProductsAreRight) {
  for (const auto format : {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kInt8}) {
    for (const Case& c : {Case{format, 5, 1, 1},
                          {format, 9, 67, 3},
                          {format, 16, 128, 7},
                          {format, 33, 352, 1},
                          {format, 7, 200, 23}}) {
      Operands o(c);
      const std::vector<float> y = o.Compute(c.rows);
      for (int64_t m = 0; m < c.count; ++m) {
        for (int64_t r = 0; r < c.rows; ++r) {
          // int8 rounds activations to 1 / 32512 of the largest of their row.
          const double bound = format == WeightFormat::kInt8 ? 2e-4 : 2e-5;
          ASSERT_NEAR(y[m * c.rows + r], o.Exact(m, r), bound * std::sqrt(double(c.cols)))
              << c.rows << " x " << c.cols << " of " << c.count << " at " << m << ", " << r;
        }
      }
    }
  }
}

TEST_P(MatMulOfIsa, BitsDependNeitherOnTheBatchNorOnThePieces) {
  for (const auto format : {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kInt8}) {
    Operands all({format, 37, 173, 20});
    const std::vector<float> y = all.Compute(37);
    EXPECT_EQ(y, all.Compute(5));
    for (int64_t m = 0; m < 20; ++m) {
      Operands one({format, 37, 173, 1});
      std::copy_n(&all.x[m * 173], 173, one.x.data());
      if (format == WeightFormat::kInt8) QuantizeRows(one.p.x, 173, one.p.x8, 0, 1);
      const std::vector<float> alone = one.Compute(8);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), y.begin() + m * 37)) << "row " << m;
    }
  }
}

TEST_P(MatMulOfIsa, QuantizedRowsKeepFifteenBitsAndNan) {
  std::vector<float> x(3 * 70);
  Random(3).FillNormal(x, 0, 1);
  std::fill_n(x.begin() + 70, 70, 0.0f);
  x[150] = std::numeric_limits<float>::infinity();
  Operands o({WeightFormat::kInt8, 4, 70, 3});
  QuantizeRows(x.data(), 70, o.p.x8, 0, 3);
  float largest = 0;
  for (int i = 0; i < 70; ++i) largest = std::max(largest, std::fabs(x[i]));
  for (int i = 0; i < 70; ++i) {
    EXPECT_NEAR(o.row_scales[0] * (128 * o.high[i] + o.low[i]), x[i], largest / 32000);
  }
  const std::vector<float> y = o.Compute(4);
  EXPECT_EQ(y[4], 0);
  EXPECT_TRUE(std::isnan(y[8]));
}

TEST(Weights, RoundTrips) {
  const std::vector<float> w = {0, -0.0f, 1, -2.5f, 3.14159f, 3e38f};
  std::vector<uint16_t> half(w.size());
  std::vector<float> back(w.size());
  RoundToBf16(w.data(), 6, half.data());
  WidenBf16(half.data(), 6, back.data());
  for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(back[i], w[i], std::fabs(w[i]) / 256) << w[i];
  int8_t q[7];
  float scale;
  QuantizeWeights(std::vector<float>(7, 0.0f).data(), 7, q, &scale);
  EXPECT_EQ(scale, 0);
  QuantizeWeights(w.data(), 5, q, &scale);
  EXPECT_EQ(q[4], 127);
  EXPECT_NEAR(q[3] * scale, -2.5, scale / 2);
}

}  // namespace
}  // namespace lattice::kernels
