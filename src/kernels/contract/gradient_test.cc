// Gradients against central differences of the kernels' own forward pass, without the reference.
#include "kernels/contract/contract_test.h"

namespace lattice::kernels {
namespace {

void ExpectGradientsOfTheLoss(const Variant& variant, const Shape& shape) {
  SCOPED_TRACE(Text(shape));
  Case<double> c = MakeCase<double>(variant, shape);
  const Results<double> computed = RunKernels(c);
  Results<double> scratch = computed;
  constexpr double kStep = 1e-6;
  for (const auto& [name, grad] : computed.grads) {
    Tensor<double> numeric = grad;
    numeric.ForEach([&, &name = name](int64_t b, int64_t t, int64_t h, int64_t x) {
      double& value = c.in.at(name).At(b, t, h, x);
      const double before = value;
      value = before + kStep;
      const double above = Loss(c, scratch);
      value = before - kStep;
      const double below = Loss(c, scratch);
      value = before;
      numeric.At(b, t, h, x) = (above - below) / (2 * kStep);
    });
    EXPECT_LE(MaxError(grad, numeric), 2e-7 * std::max(1.0, MaxAbs(numeric))) << "d" << name;
  }
}

using GradientTest = RuleTest;

TEST_P(GradientTest, CentralDifferences) {
  ForEachVariant([](const Variant& variant) {
    ExpectGradientsOfTheLoss(variant, {3, 4, 3, 2, 2});
    ExpectGradientsOfTheLoss(variant, {4, 3, 4});
    ExpectGradientsOfTheLoss(variant, {2, 3, kBlock + 3});
  });
}

LATTICE_FOR_EVERY_RULE(GradientTest);

}  // namespace
}  // namespace lattice::kernels
