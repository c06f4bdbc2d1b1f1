// Chooses the grids of four-bit weights, and packs and unpacks their groups.
#include "kernels/dense/groups.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace lattice::kernels {
namespace {

// bf16 by its bits.
uint16_t Rounded(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
float Widened(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Zero where a number is too large for bf16.
Grid RoundedGrid(float factor, float offset) {
  const Grid grid = {Widened(Rounded(factor)), Widened(Rounded(offset))};
  return std::isfinite(grid.factor) && std::isfinite(grid.offset) ? grid : Grid{};
}

// Values w [count], of which each counts by its weight.
struct Weighted {
  const float* w;
  int64_t count;
  const float* weights;  // or null: 1 each

  float Weight(int64_t i) const { return weights == nullptr ? 1 : weights[i]; }

  // The factor and offset with the least squared error if every value keeps the integer that `grid` gives it.
  Grid Refitted(const Grid& grid) const {
    float n = 0, q_sum = 0, square_sum = 0, w_sum = 0, product_sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float q = grid.Nearest(w[i]), weight = Weight(i);
      n += weight;
      q_sum += weight * q;
      square_sum += weight * q * q;
      w_sum += weight * w[i];
      product_sum += weight * q * w[i];
    }
    const float spread = n * square_sum - q_sum * q_sum;
    const float factor = (n * product_sum - q_sum * w_sum) / spread, offset = (w_sum - factor * q_sum) / n;
    if (!(spread > 0) || !(factor > 0) || !std::isfinite(offset)) return grid;
    return RoundedGrid(factor, offset);
  }

  float SquaredError(const Grid& grid) const {
    float sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float error = w[i] - grid.Value(grid.Nearest(w[i]));
      sum += Weight(i) * error * error;
    }
    return sum;
  }
};

// Where column c of a group is: its byte behind factor and offset, and by how many bits it is shifted there.
constexpr int64_t ByteOf(int64_t c) { return 4 + c / 8 * 4 + c % 4; }
constexpr int ShiftOf(int64_t c) { return c % 8 < 4 ? 0 : 4; }

}  // namespace

uint8_t Grid::Nearest(float w) const {
  if (!(factor > 0)) return 0;
  return static_cast<uint8_t>(std::clamp((w - offset) / factor + 0.5f, 0.0f, kLargest + 0.5f));
}

Grid FitGrid(const float* w, int64_t count, const float* weights) {
  const auto [low, high] = std::minmax_element(w, w + count);
  const float range = *high - *low, middle = *low + range / 2;
  if (!std::all_of(w, w + count, [](float x) { return std::isfinite(x); }) || !std::isfinite(range))
    return {};
  if (range / Grid::kLargest < 1e-30f) return RoundedGrid(0, middle);
  // A grid that spans all weights is too coarse for most of them: narrower ones are tried too, and each is fitted to
  // the integers that it gives.
  constexpr float kWidths[] = {1, 0.94f, 0.88f, 0.82f, 0.76f};
  const Weighted values = {w, count, weights};
  Grid best;
  float least = INFINITY;
  for (const float width : kWidths) {
    const float factor = width * range / Grid::kLargest;
    const Grid grid = values.Refitted(RoundedGrid(factor, middle - factor * Grid::kLargest / 2));
    const float error = values.SquaredError(grid);
    if (error < least) {
      least = error;
      best = grid;
    }
  }
  return best;
}

void PackGroup(const Grid& grid, const uint8_t* q, std::byte* out) {
  const uint16_t head[2] = {Rounded(grid.factor), Rounded(grid.offset)};
  std::memcpy(out, head, sizeof(head));
  std::fill_n(out + sizeof(head), kGroupBytes - sizeof(head), std::byte{0});
  for (int64_t c = 0; c < kGroupColumns; ++c) out[ByteOf(c)] |= std::byte{q[c]} << ShiftOf(c);
}

Grid GridOf(const std::byte* group) {
  uint16_t head[2];
  std::memcpy(head, group, sizeof(head));
  return {Widened(head[0]), Widened(head[1])};
}

void QuantizeGroups(const float* w, int64_t cols, std::byte* row) {
  for (int64_t first = 0; first < cols; first += kGroupColumns, row += kGroupBytes) {
    const int64_t count = std::min(kGroupColumns, cols - first);
    const Grid grid = FitGrid(w + first, count);
    uint8_t q[kGroupColumns] = {};
    for (int64_t i = 0; i < count; ++i) q[i] = grid.Nearest(w[first + i]);
    PackGroup(grid, q, row);
  }
}

void WidenGroups(const std::byte* row, int64_t cols, float* out) {
  for (int64_t c = 0; c < cols; ++c) {
    const std::byte* group = row + c / kGroupColumns * kGroupBytes;
    const int64_t at = c % kGroupColumns;
    const std::byte q = (group[ByteOf(at)] >> ShiftOf(at)) & std::byte{15};
    out[c] = GridOf(group).Value(static_cast<uint8_t>(q));
  }
}

}  // namespace lattice::kernels
