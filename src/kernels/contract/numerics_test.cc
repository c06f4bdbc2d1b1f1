// Properties of a rule at shapes and values that are drawn: gradients along random directions, slots and value axes that
// have no order, and numbers at the ends of their range that stay in the cell that had them.
#include <limits>
#include <numeric>

#include "base/random.h"
#include "kernels/contract/contract_test.h"

namespace lattice::kernels {
namespace {

// A small random shape; half of them are packed sequences of random lengths.
Shape DrawSmallShape(uint64_t seed) {
  const Random random(seed, 900);
  const auto between = [&](int64_t low, int64_t high, uint64_t index) {
    return low + static_cast<int64_t>(random.Below(static_cast<uint64_t>(high - low + 1), index));
  };
  Shape shape{between(1, 9, 0), between(2, 9, 1), between(1, 6, 2), between(1, 3, 3), between(1, 3, 4)};
  shape.layout = static_cast<Layout>(between(0, 2, 5));
  if (between(0, 3, 6) == 0) shape.T = kBlock + between(-1, 4, 7);
  shape.ragged = between(0, 1, 8) == 1;
  for (int64_t n = 0; shape.ragged && n < shape.N; ++n)
    shape.lengths.push_back(between(0, shape.T, 10 + static_cast<uint64_t>(n)));
  return shape;
}

Tensor<double> Direction(const Tensor<double>& like, uint64_t seed, const std::string& name) {
  Tensor<double> d = like;
  const Random random(seed, 901 + name.size());
  uint64_t index = static_cast<uint64_t>(name[0]) << 32;
  d.ForEach([&](int64_t n, int64_t t, int64_t h, int64_t i) { d.At(n, t, h, i) = random.Normal(index++); });
  return d;
}

void Move(const Tensor<double>& direction, double by, Tensor<double>& x) {
  x.ForEach(
      [&](int64_t n, int64_t t, int64_t h, int64_t i) { x.At(n, t, h, i) += by * direction.At(n, t, h, i); });
}

double LossOf(const Case<double>& c) {
  Results<double> r = MakeResults(c);
  return Loss(c, r);
}

// The derivative of the loss along a random direction of one input, by central differences of two step sizes, of which
// the error of the second order cancels.
double Slope(const Case<double>& c, const std::string& name, const Tensor<double>& direction) {
  const auto difference = [&](double step) {
    Case<double> above = c, below = c;
    Move(direction, step, above.in.at(name));
    Move(direction, -step, below.in.at(name));
    return (LossOf(above) - LossOf(below)) / (2 * step);
  };
  constexpr double kStep = 1e-4;
  return (4 * difference(kStep / 2) - difference(kStep)) / 3;
}

void ExpectGradientsAlongDirections(const Variant& variant, uint64_t seed) {
  const Shape shape = DrawSmallShape(seed);
  SCOPED_TRACE(Text(variant) + ", " + Text(shape) + ", seed " + std::to_string(seed));
  const Case<double> c = MakeCase<double>(variant, shape, seed);
  const Results<double> r = RunKernels(c);
  for (const auto& [name, grad] : r.grads) {
    const Tensor<double> direction = Direction(grad, seed, name);
    const double want = Slope(c, name, direction), got = Inner(grad, direction);
    // Central differences lose digits of a loss that is a sum of many terms.
    EXPECT_NEAR(got, want,
                2e-7 * std::max(1.0, std::sqrt(Inner(grad, grad)) * std::sqrt(Inner(direction, direction))))
        << "d" << name;
  }
}

using NumericsTest = RuleTest;

// Without shrinkage, whose loss has kinks.
TEST_P(NumericsTest, GradientsAlongRandomDirectionsAtRandomShapes) {
  const std::vector<Variant> variants = VariantsOf(GetParam());
  for (uint64_t seed = 0; seed < 40; seed += kThin) {
    const Variant& variant = variants[seed % variants.size()];
    if (!variant.shrinks) ExpectGradientsAlongDirections(variant, seed);
  }
}

// Element i of every row of `width` elements becomes element order[i]; rows as they are.
Tensor<double> PermuteElements(const Tensor<double>& x, const std::vector<int64_t>& order) {
  Tensor<double> out = x;
  x.ForEach([&](int64_t n, int64_t t, int64_t h, int64_t i) {
    out.At(n, t, h, order[static_cast<size_t>(i)]) = x.At(n, t, h, i);
  });
  return out;
}

// Where the elements of a state go when slot i becomes slot order[i]: the rows of the matrix, and what follows it with one
// number per slot.
std::vector<int64_t> StateOrder(const std::string& rule, int64_t D, const std::vector<int64_t>& order) {
  const auto M = static_cast<int64_t>(order.size());
  std::vector<int64_t> places;
  for (int64_t i = 0; i < M; ++i) {
    for (int64_t j = 0; j < D; ++j) places.push_back(order[static_cast<size_t>(i)] * D + j);
  }
  for (const StatePart& part : FindMemory(rule).extra_state) {
    const auto begin = static_cast<int64_t>(places.size());
    if (!part.per_slot) places.push_back(begin);
    for (int64_t i = 0; part.per_slot && i < M; ++i) places.push_back(begin + order[static_cast<size_t>(i)]);
  }
  return places;
}

std::vector<int64_t> RandomOrder(int64_t size, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  const Random random(seed, 902);
  for (uint64_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i, i)]);
  return order;
}

void ExpectClose(const Tensor<double>& got, const Tensor<double>& want, const char* name) {
  EXPECT_LE(MaxError(got, want), 1e-9 * std::max(1.0, MaxAbs(want))) << name;
}

TEST_P(NumericsTest, SlotsHaveNoOrder) {
  ForEachVariant([&](const Variant& variant) {
    for (uint64_t seed = 100; seed < 106; ++seed) {
      const Shape shape = DrawSmallShape(seed);
      SCOPED_TRACE(Text(shape));
      const Case<double> c = MakeCase<double>(variant, shape, seed);
      const std::vector<int64_t> order = RandomOrder(shape.M, seed);
      const std::vector<int64_t> in_state = StateOrder(GetParam(), shape.D, order);
      Case<double> moved = c;
      for (const char* name : {"q", "k"}) moved.in.at(name) = PermuteElements(c.in.at(name), order);
      for (const GateInfo& gate : FindMemory(GetParam()).gates) {
        if (gate.per_slot && c.in.contains(gate.name))
          moved.in.at(gate.name) = PermuteElements(c.in.at(gate.name), order);
      }
      moved.in.at("state") = PermuteElements(c.in.at("state"), in_state);
      moved.dstate_out = PermuteElements(c.dstate_out, in_state);
      const Results<double> want = RunKernels(c), got = RunKernels(moved);
      ExpectClose(got.y, want.y, "y");
      ExpectClose(got.state_out, PermuteElements(want.state_out, in_state), "state_out");
      ExpectClose(got.grads.at("v"), want.grads.at("v"), "dv");
      ExpectClose(got.grads.at("k"), PermuteElements(want.grads.at("k"), order), "dk");
    }
  });
}

// Turns the first two axes of every row of D elements among the first `rows` rows.
Tensor<double> Turn(const Tensor<double>& x, int64_t D, int64_t rows) {
  const double c = std::cos(0.7), s = std::sin(0.7);
  Tensor<double> out = x;
  x.ForEach([&](int64_t n, int64_t t, int64_t h, int64_t i) {
    if (i >= rows * D || i % D != 0) return;
    const double a = x.At(n, t, h, i), b = x.At(n, t, h, i + 1);
    if (Tensor<double>::IsPoison(a)) return;
    out.At(n, t, h, i) = c * a - s * b, out.At(n, t, h, i + 1) = s * a + c * b;
  });
  return out;
}

// Shrinkage is by element, so it has preferred axes.
TEST_P(NumericsTest, ValuesHaveNoPreferredAxes) {
  ForEachVariant([&](const Variant& variant) {
    if (variant.shrinks) return;
    for (uint64_t seed = 200; seed < 206; ++seed) {
      const Shape shape = DrawSmallShape(seed);
      SCOPED_TRACE(Text(shape));
      const int64_t M = shape.M, D = shape.D;
      const Case<double> c = MakeCase<double>(variant, shape, seed);
      Case<double> turned = c;
      turned.in.at("v") = Turn(c.in.at("v"), D, 1);
      turned.in.at("state") = Turn(c.in.at("state"), D, M);
      turned.dy = Turn(c.dy, D, 1);
      turned.dstate_out = Turn(c.dstate_out, D, M);
      const Results<double> want = RunKernels(c), got = RunKernels(turned);
      ExpectClose(got.y, Turn(want.y, D, 1), "y");
      ExpectClose(got.state_out, Turn(want.state_out, D, M), "state_out");
      ExpectClose(got.grads.at("k"), want.grads.at("k"), "dk");
      ExpectClose(got.grads.at("v"), Turn(want.grads.at("v"), D, 1), "dv");
    }
  });
}

// Results of all cells but head `head` of sequence `spoilt` have the bits of `clean`.
template <typename T>
void ExpectOthersUntouched(const Case<T>& c, int64_t spoilt, int64_t head, const Results<T>& r,
                           const Results<T>& clean) {
  const Sequence& sequence = c.sequences[static_cast<size_t>(spoilt)];
  ForEachResult(r, clean, [&](const std::string& name, const Tensor<T>& got, const Tensor<T>& want) {
    int64_t wrong = 0;
    got.ForEach([&](int64_t b, int64_t t, int64_t h, int64_t i) {
      const bool inside =
          name.ends_with("state") || name == "state_out"
              ? b == spoilt
              : b == sequence.batch && t >= sequence.begin && t < sequence.begin + sequence.length;
      if (inside && h == head) return;
      const T x = got.At(b, t, h, i), y = want.At(b, t, h, i);
      wrong += std::memcmp(&x, &y, sizeof(T)) != 0;
    });
    EXPECT_EQ(wrong, 0) << name << ": elements of other heads or sequences";
  });
}

// NaN, infinities, and the largest and smallest numbers, in every input of a packed batch: nothing crashes, and the
// neighbours in the batch and in the row do not notice.
template <typename T>
void ExpectHostileValuesContained(const Variant& variant) {
  using Limits = std::numeric_limits<T>;
  const T values[] = {Limits::quiet_NaN(), Limits::infinity(),   -Limits::infinity(),
                      Limits::max(),       Limits::denorm_min(), -Limits::denorm_min()};
  Shape shape{5, 7, kBlock + 3, 2, 3, true, Layout::kGaps, {4, kBlock + 3, 5}};
  const Case<T> clean = MakeCase<T>(variant, shape);
  const Results<T> want = RunKernels(clean);
  constexpr int64_t kSpoilt = 1, kHead = 1;
  const Sequence& sequence = clean.sequences[kSpoilt];
  for (const auto& [name, x] : clean.in) {
    for (const T value : values) {
      SCOPED_TRACE(name + " = " + std::to_string(value));
      Case<T> c = clean;
      if (name == "state") {
        c.in[name].At(kSpoilt, 0, kHead, x.X() - 1) = value;
      } else {
        c.in[name].At(sequence.batch, sequence.begin + 2, kHead, x.X() - 1) = value;
      }
      ExpectOthersUntouched(c, kSpoilt, kHead, RunKernels(c), want);
    }
  }
}

TEST_P(NumericsTest, HostileValuesStayInTheirCell) {
  ForEachIsa([&](const std::string& isa) {
    SCOPED_TRACE(isa);
    ForEachVariant([](const Variant& variant) {
      ExpectHostileValuesContained<float>(variant);
      ExpectHostileValuesContained<double>(variant);
    });
  });
}

LATTICE_FOR_EVERY_RULE(NumericsTest);

}  // namespace
}  // namespace lattice::kernels
