#include "kernels/dense/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "kernels/dense/activations.h"
#include "kernels/dense/groups.h"
#include "kernels/isa.h"

namespace lattice::kernels {
namespace {

constexpr WeightFormat kFormats[] = {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kInt8,
                                     WeightFormat::kInt4};

struct Case {
  WeightFormat format;
  int64_t rows, cols, count;
};

// Weights of a format, made from float32, and activations in all forms.
struct Operands {
  std::vector<float> w, x, scales;
  std::vector<uint16_t> bf16;
  std::vector<int8_t> int8;
  std::vector<std::byte> int4, panels;
  Activations activations;
  MatMul p;

  explicit Operands(const Case& c) : w(c.rows * c.cols), x(c.count * c.cols) {
    Random(1).FillNormal(w, 0, 0.3f);
    Random(2).FillNormal(x, 0, 2);
    p.w = {c.format, c.rows, c.cols, w.data(), nullptr};
    p.count = c.count;
    if (c.format == WeightFormat::kBf16) UseBf16();
    if (c.format == WeightFormat::kInt8) UseInt8();
    if (c.format == WeightFormat::kInt4) UseInt4();
    Convert();
  }
  void UseBf16() {
    bf16.resize(w.size());
    RoundToBf16(w.data(), static_cast<int64_t>(w.size()), bf16.data());
    WidenBf16(bf16.data(), static_cast<int64_t>(w.size()), w.data());
    Pack(bf16.data());
  }
  void UseInt8() {
    int8.resize(w.size());
    scales.resize(p.w.rows);
    for (int64_t r = 0; r < p.w.rows; ++r) {
      QuantizeWeights(&w[r * p.w.cols], p.w.cols, &int8[r * p.w.cols], &scales[r]);
      for (int64_t c = 0; c < p.w.cols; ++c) w[r * p.w.cols + c] = scales[r] * int8[r * p.w.cols + c];
    }
    Pack(int8.data());
    p.w.scales = scales.data();
  }
  void UseInt4() {
    const int64_t row_bytes = RowBytes(p.w.format, p.w.cols);
    int4.resize(static_cast<size_t>(p.w.rows * row_bytes));
    for (int64_t r = 0; r < p.w.rows; ++r) {
      QuantizeGroups(&w[r * p.w.cols], p.w.cols, &int4[r * row_bytes]);
      WidenGroups(&int4[r * row_bytes], p.w.cols, &w[r * p.w.cols]);
    }
    Pack(int4.data());
  }
  void Pack(const void* rows) {
    const int64_t row_bytes = RowBytes(p.w.format, p.w.cols);
    panels.resize(static_cast<size_t>(p.w.StoredBytes()));
    for (int64_t i = 0; i < PanelsOf(p.w.rows); ++i) {
      PackPanel(p.w.format, static_cast<const std::byte*>(rows) + i * kPanelRows * row_bytes,
                std::min(kPanelRows, p.w.rows - i * kPanelRows), p.w.cols,
                panels.data() + i * PanelBytes(p.w.format, p.w.cols));
    }
    p.w.data = panels.data();
  }
  // After a change of x.
  void Convert() {
    activations.Reset(p.w.format, x.data(), p.count, p.w.cols);
    activations.Convert(0, p.count);
    p = activations.Times(p.w, p.y);
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
  // What rounding the activations once may cost, for the format as it is computed here.
  double Bound() const {
    double bound = 2e-5;
    if (ActivationFormat(p.w.format) == WeightFormat::kInt8)
      bound = 2.5e-2;  // 1 / 254 of the largest of a block
    if (p.w.format == WeightFormat::kBf16 && WantsBf16Rows()) bound = 5e-3;
    return bound * std::sqrt(static_cast<double>(p.w.cols));
  }
};

class MatMulOfIsa : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SetIsa(GetParam()); }
  void TearDown() override { SetIsa(AvailableIsas().back()); }
};
INSTANTIATE_TEST_SUITE_P(Isa, MatMulOfIsa, testing::ValuesIn(AvailableIsas()));

TEST_P(MatMulOfIsa, ProductsAreRight) {
  for (const auto format : kFormats) {
    for (const Case& c : {Case{format, 5, 1, 1},
                          {format, 9, 67, 3},
                          {format, 16, 128, 7},
                          {format, 33, 352, 1},
                          {format, 70, 130, 17},
                          {format, 7, 200, 23}}) {
      Operands o(c);
      const std::vector<float> y = o.Compute(c.rows);
      for (int64_t m = 0; m < c.count; ++m) {
        for (int64_t r = 0; r < c.rows; ++r) {
          ASSERT_NEAR(y[m * c.rows + r], o.Exact(m, r), o.Bound())
              << c.rows << " x " << c.cols << " of " << c.count << " at " << m << ", " << r;
        }
      }
    }
  }
}

TEST_P(MatMulOfIsa, BitsDependNeitherOnTheBatchNorOnThePieces) {
  for (const auto format : kFormats) {
    Operands all({format, 37, 173, 20});
    const std::vector<float> y = all.Compute(37);
    EXPECT_EQ(y, all.Compute(5));
    for (int64_t m = 0; m < 20; ++m) {
      Operands one({format, 37, 173, 1});
      std::copy_n(&all.x[m * 173], 173, one.x.data());
      one.Convert();
      const std::vector<float> alone = one.Compute(8);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), y.begin() + m * 37)) << "row " << m;
    }
  }
}

TEST_P(MatMulOfIsa, RoundedActivationsGiveExactProducts) {
  for (const int64_t cols : {1, 31, 64, 173}) {
    Operands o({WeightFormat::kBf16, 9, cols, 7});
    std::vector<uint16_t> rounded(o.x.size());
    RoundToBf16(o.x.data(), static_cast<int64_t>(o.x.size()), rounded.data());
    WidenBf16(rounded.data(), static_cast<int64_t>(o.x.size()), o.x.data());
    o.Convert();
    const std::vector<float> y = o.Compute(9);
    for (int64_t m = 0; m < 7; ++m) {
      for (int64_t r = 0; r < 9; ++r) {
        ASSERT_NEAR(y[m * 9 + r], o.Exact(m, r), 2e-5 * std::sqrt(static_cast<double>(cols)));
      }
    }
  }
}

// The integers of row m of the activations, [cols], and the scales of its blocks.
struct QuantizedRow {
  std::vector<int8_t> values;
  std::vector<float> scales;

  QuantizedRow(const PackedRows& rows, int64_t m, int64_t cols) : values(cols) {
    const int64_t words = WordsOf(WeightFormat::kInt8, cols), blocks = BlocksOf(rows.weights, cols);
    for (int64_t c = 0; c < cols; ++c) {
      const uint32_t word = rows.data[rows.Index(m, words) + c / 4 * rows.Step(m)];
      values[c] = static_cast<int8_t>(word >> (8 * (c % 4)));
    }
    for (int64_t b = 0; b < blocks; ++b)
      scales.push_back(rows.scales[rows.Index(m, blocks) + b * rows.Step(m)]);
  }
};

TEST_P(MatMulOfIsa, Int8SumsBlocksExactlyAndThenInOrder) {
  for (const Case& c : {Case{WeightFormat::kInt8, 37, 173, 20},
                        {WeightFormat::kInt8, 5, 64, 1},
                        {WeightFormat::kInt8, 64, 770, 3}}) {
    Operands o(c);
    const std::vector<float> y = o.Compute(13);
    for (int64_t m = 0; m < c.count; ++m) {
      const QuantizedRow row(o.p.packed, m, c.cols);
      for (int64_t r = 0; r < c.rows; ++r) {
        float sum = 0;
        for (int64_t b = 0; b < BlocksOf(c.format, c.cols); ++b) {
          int32_t exact = 0;
          for (int64_t i = b * 64; i < std::min<int64_t>(c.cols, (b + 1) * 64); ++i)
            exact += row.values[i] * o.int8[r * c.cols + i];
          const float part = static_cast<float>(exact) * row.scales[b];
          sum += part;
        }
        ASSERT_EQ(y[m * c.rows + r], sum * o.scales[r]) << m << ", " << r;
      }
    }
  }
}

// The integer of a column, found by its own arithmetic on the bytes of a row.
int IntegerAt(const std::byte* row, int64_t c) {
  const int64_t in_group = c % 32, byte = 20 * (c / 32) + 4 + in_group / 8 * 4 + in_group % 4;
  return std::to_integer<int>(row[byte]) >> (in_group / 4 % 2 * 4) & 15;
}

TEST_P(MatMulOfIsa, Int4SumsGroupsExactlyAndThenInOrder) {
  for (const Case& c : {Case{WeightFormat::kInt4, 37, 173, 20},
                        {WeightFormat::kInt4, 5, 64, 1},
                        {WeightFormat::kInt4, 3, 1, 9},
                        {WeightFormat::kInt4, 64, 770, 3},
                        {WeightFormat::kInt4, 33, 100, 15}}) {
    Operands o(c);
    const int64_t row_bytes = RowBytes(c.format, c.cols);
    const std::vector<float> y = o.Compute(13);
    for (int64_t m = 0; m < c.count; ++m) {
      const QuantizedRow row(o.p.packed, m, c.cols);
      for (int64_t r = 0; r < c.rows; ++r) {
        float sum = 0;
        for (int64_t g = 0; g < GroupsOf(c.cols); ++g) {
          int32_t products = 0, alone = 0;
          for (int64_t i = g * kGroupColumns; i < std::min(c.cols, (g + 1) * kGroupColumns); ++i) {
            products += row.values[i] * IntegerAt(&o.int4[r * row_bytes], i);
            alone += row.values[i];
          }
          const Grid grid = GridOf(&o.int4[r * row_bytes + g * kGroupBytes]);
          const float scaled = static_cast<float>(products) * grid.factor;
          const float shifted = static_cast<float>(alone) * grid.offset;
          const float both = scaled + shifted;
          const float part = both * row.scales[g];
          sum += part;
        }
        ASSERT_EQ(y[m * c.rows + r], sum) << m << ", " << r;
      }
    }
  }
}

TEST_P(MatMulOfIsa, LargestFourBitIntegersDoNotOverflow) {
  for (const float value : {-3.0f, 3.0f}) {
    Operands o({WeightFormat::kInt4, 4, 1040, 9});
    const std::vector<uint8_t> q(kGroupColumns, 15);
    for (size_t at = 0; at < o.int4.size(); at += kGroupBytes) PackGroup({1, 0}, q.data(), &o.int4[at]);
    o.Pack(o.int4.data());
    std::fill(o.w.begin(), o.w.end(), 15.0f);
    std::fill(o.x.begin(), o.x.end(), value);
    o.Convert();
    const std::vector<float> y = o.Compute(4);
    for (const float sum : y) ASSERT_NEAR(sum / o.Exact(0, 0), 1, 1e-5);
  }
}

TEST_P(MatMulOfIsa, LargestIntegersDoNotOverflow) {
  for (const int64_t cols : {1040, 40000}) {
    for (const int8_t weight : {127, -127}) {
      Operands o({WeightFormat::kInt8, 4, cols, 2});
      std::fill(o.int8.begin(), o.int8.end(), weight);
      o.Pack(o.int8.data());
      std::fill(o.scales.begin(), o.scales.end(), 1.0f);
      std::fill(o.w.begin(), o.w.end(), static_cast<float>(weight));
      std::fill(o.x.begin(), o.x.end(), -3.0f);
      o.Convert();
      const std::vector<float> y = o.Compute(4);
      for (const float value : y) ASSERT_NEAR(value / o.Exact(0, 0), 1, 1e-5) << cols;
    }
  }
}

void ExpectEightBitsAndNan(WeightFormat format, int64_t block) {
  constexpr int64_t kCols = 70;
  Operands o({format, 4, kCols, 3});
  Random(3).FillNormal(o.x, 0, 1);
  o.x[5] = 1000;  // what is large in one block costs the other nothing
  std::fill_n(o.x.begin() + kCols, kCols, 0.0f);
  o.x[150] = std::numeric_limits<float>::infinity();
  o.Convert();
  const QuantizedRow row(o.p.packed, 0, kCols);
  for (int64_t i = 0; i < kCols; ++i) {
    const int64_t b = i / block;
    float largest = 0;
    for (int64_t j = b * block; j < std::min(kCols, (b + 1) * block); ++j)
      largest = std::max(largest, std::fabs(o.x[j]));
    EXPECT_NEAR(row.scales[b] * row.values[i], o.x[i], largest / 253);
  }
  const std::vector<float> y = o.Compute(4);
  EXPECT_EQ(y[4], 0);
  EXPECT_TRUE(std::isnan(y[8]));
}

TEST_P(MatMulOfIsa, QuantizedBlocksKeepEightBitsAndNan) {
  ExpectEightBitsAndNan(WeightFormat::kInt8, 64);
  ExpectEightBitsAndNan(WeightFormat::kInt4, 32);
}

TEST_P(MatMulOfIsa, ActivationsAreRoundedToTheNearestInteger) {
  const std::vector<float> x = {127, 0.49999997f, -0.49999997f, 0.5f, 1.5f, -2.5f, 63.5f, 126.49999f};
  const std::vector<int> expected = {127, 0, 0, 0, 2, -2, 64, 126};
  Operands o({WeightFormat::kInt8, 1, static_cast<int64_t>(x.size()), 1});
  o.x = x;
  o.Convert();
  const QuantizedRow row(o.p.packed, 0, static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(row.values[i], expected[i]) << x[i];
}

TEST_P(MatMulOfIsa, NotFiniteActivationsReachTheProduct) {
  for (const auto format : kFormats) {
    Operands o({format, 4, 70, 2});
    o.x[3] = std::numeric_limits<float>::quiet_NaN();
    o.Convert();
    const std::vector<float> y = o.Compute(4);
    for (int r = 0; r < 4; ++r) {
      EXPECT_TRUE(std::isnan(y[r]));
      EXPECT_TRUE(std::isfinite(y[4 + r]));
    }
  }
}

TEST(Weights, PanelsGiveBackTheirRows) {
  for (const auto format : {WeightFormat::kBf16, WeightFormat::kInt8, WeightFormat::kInt4}) {
    for (const int64_t cols : {1, 7, 64, 131}) {
      const int64_t rows = 45, row_bytes = RowBytes(format, cols);
      std::vector<uint8_t> from(rows * row_bytes), row(row_bytes);
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 31 + i / 251);
      std::vector<uint8_t> panels(2 * PanelBytes(format, cols));
      PackPanel(format, from.data(), 32, cols, panels.data());
      PackPanel(format, from.data() + 32 * row_bytes, rows - 32, cols, panels.data() + panels.size() / 2);
      for (int64_t r = 0; r < rows; ++r) {
        UnpackRow(format, panels.data(), r, cols, row.data());
        ASSERT_TRUE(std::equal(row.begin(), row.end(), from.begin() + r * row_bytes)) << r << ", " << cols;
      }
    }
  }
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
