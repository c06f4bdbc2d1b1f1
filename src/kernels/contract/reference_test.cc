// The kernels against the reference, forward and backward, over sizes around every vector width, lengths
// around the blocks between checkpoints, strided and packed batches, under every instruction set.
#include <algorithm>

#include "kernels/contract/contract_test.h"

namespace lattice::kernels {
namespace {

constexpr int64_t kSizes[] = {1, 2, 3, 5, 16, 17, 33, 64, 65};
constexpr int64_t kLengths[] = {1, 2, 31, kBlock - 1, kBlock, kBlock + 1, kBlock + 6};

// All pairs of sizes, each with the next of several lengths, heads, sequences and layouts in turn.
std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const int64_t M : kSizes) {
    for (const int64_t D : kSizes) {
      const int n = static_cast<int>(shapes.size());
      Shape s{M, D, kLengths[n % 7], 1 + n % 3, 1 + n / 3 % 3, n % 4 == 1, static_cast<Layout>(n / 2 % 3)};
      constexpr int64_t kElements = 200'000;
      while (s.H > 1 && s.M * s.D * s.T * s.H * s.N > kElements) --s.H;
      while (s.N > 2 && s.M * s.D * s.T * s.H * s.N > kElements) --s.N;
      shapes.push_back(s);
    }
  }
  return shapes;
}

// Calls run(variant, shape) for every shape with up to four variants, so that each variant gets many shapes.
template <class Run>
void ForEachCase(const std::string& rule, const Run& run) {
  const std::vector<Variant> variants = VariantsOf(rule);
  const std::vector<Shape> shapes = Shapes();
  for (size_t n = 0; n < shapes.size(); n += kThin) {
    for (size_t turn = 0; turn < std::min<size_t>(4, variants.size()); ++turn) {
      const Variant& variant = variants[(n / kThin + turn * 3) % variants.size()];
      SCOPED_TRACE(Text(variant) + ", " + Text(shapes[n]));
      run(variant, shapes[n]);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// The tolerance of a result, by its name.
using Tolerances = std::map<std::string, double>;

// Values and gradients of these problems are of the order of one; smaller tensors are compared on that scale.
// A slot of width one cannot turn, so its gradients are what remains when large terms cancel. Where float32
// loses digits in the reference itself, the problem is ill-conditioned, and the kernels may lose them too:
// the tolerance is a small multiple of that loss, in float64 scaled by the ratio of the precisions.
void MeasureTolerances(const Shape& shape, const Results<float>& f32, const Results<double>& f64,
                       Tolerances& in_f32, Tolerances& in_f64) {
  constexpr double kMultiple = 20, kRatio = 0x1p-29;
  const double floor = shape.D == 1 ? 5e-4 : 5e-5;
  ForEachResult(f32, f64, [&](const std::string& name, const auto& rounded, const auto& want) {
    const double scale = std::max(1.0, MaxAbs(want)), loss = kMultiple * MaxError(rounded, want);
    in_f32[name] = std::max(floor * scale, loss);
    in_f64[name] = std::max(1e-10 * scale, kRatio * loss);
  });
}

// With shrinkage the gradient is discontinuous where an element meets the threshold, and in float32 some
// element ends on the other side of it. That changes a few elements of a gradient, not all.
double ErrorOf(const Variant& variant, const std::string& name, const Tensor<float>& got,
               const Tensor<double>& want) {
  const bool jumps = variant.shrinks && name.starts_with("d");
  return jumps ? 1e-2 * RelativeError(got, want) : MaxError(got, want);
}
double ErrorOf(const Variant&, const std::string&, const Tensor<double>& got, const Tensor<double>& want) {
  return MaxError(got, want);
}

template <typename T>
void ExpectEqual(const Variant& variant, const Results<T>& got, const Results<double>& want,
                 const Tolerances& allowed) {
  ForEachResult(got, want, [&](const std::string& name, const auto& x, const auto& expected) {
    EXPECT_LE(ErrorOf(variant, name, x, expected), allowed.at(name)) << name << " in float" << 8 * sizeof(T);
  });
}

using ReferenceTest = RuleTest;

TEST_P(ReferenceTest, KernelsEqualReference) {
  ForEachCase(GetParam(), [](const Variant& variant, const Shape& shape) {
    const Case<float> f32 = MakeCase<float>(variant, shape);
    const Case<double> f64 = MakeCase<double>(variant, shape);
    const Results<double> want = RunReference(f64);
    Tolerances in_f32, in_f64;
    MeasureTolerances(shape, RunReference(f32), want, in_f32, in_f64);
    ForEachIsa([&](const std::string& isa) {
      SCOPED_TRACE(isa);
      ExpectEqual(variant, RunKernels(f64), want, in_f64);
      ExpectEqual(variant, RunKernels(f32), want, in_f32);
    });
  });
}

// No gradient of the final state is a gradient of zeros.
TEST_P(ReferenceTest, AbsentStateGradientIsZero) {
  ForEachVariant([](const Variant& variant) {
    Case<double> c = MakeCase<double>(variant, {5, 17, kBlock + 8, 2, 2});
    c.dstate_out.ForEach(
        [&](int64_t b, int64_t t, int64_t h, int64_t x) { c.dstate_out.At(b, t, h, x) = 0; });
    const Results<double> want = RunKernels(c);
    Results<double> got = want;
    auto p = DescribeBackward(c, got);
    p.dstate_out = nullptr;
    KernelsOf(variant).Backward<double>()(p, 0, p.Cells());
    ForEachResult(got, want, [](const std::string& name, const auto& a, const auto& b) {
      EXPECT_TRUE(SameBits(a, b)) << name;
    });
  });
}

LATTICE_FOR_EVERY_RULE(ReferenceTest);

}  // namespace
}  // namespace lattice::kernels
