#include "nn/layers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "nn/language_model.h"
#include "nn/projections.h"
#include "nn/testing.h"
#include "ops/gated_norm.h"
#include "ops/linear_loss.h"
#include "ops/products.h"
#include "ops/row_norm.h"
#include "ops/short_conv.h"
#include "ops/swiglu.h"
#include "ops/unit_conv.h"
#include "ops/vectors.h"

namespace lattice::nn {
namespace {

using torch::autograd::variable_list;

// |a - b| / |b|
double Distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wide = b.to(at::kDouble);
  return ((a.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

TEST(Products, OfEverySizeEqualTorchsInFloat64) {
  // The second is large enough for whatever library is called for large ones.
  for (const auto& [n, in, out] : {std::tuple{7, 5, 3}, {640, 256, 512}}) {
    const at::Tensor x = Draw({n, in}, 1), w = Draw({out, in}, 2), g = Draw({n, out}, 3);
    const at::Tensor x32 = x.to(at::kFloat), w32 = w.to(at::kFloat), g32 = g.to(at::kFloat);
    EXPECT_LT(Distance(OutputProduct(x32, w32), at::mm(x, w.t())), 1e-6);
    EXPECT_LT(Distance(InputGradient(g32, w32), at::mm(g, w)), 1e-6);
    EXPECT_LT(Distance(WeightGradient(g32, x32), at::mm(g.t(), x)), 1e-6);
  }
}

TEST(Projections, GiveTheGradientsOfSeparateLayers) {
  const at::Tensor x = Draw({2, 5, 6}, 1).requires_grad_();
  const at::Tensor a = Draw({4, 6}, 2).requires_grad_(), b = Draw({3, 6}, 3).requires_grad_();
  const auto loss = [](const at::Tensor& ya, const at::Tensor& yb) {
    return (ya.square().sum() + yb.sin().sum());
  };
  const std::vector<at::Tensor> y = Projections({a, b})(x);
  const auto ours = torch::autograd::grad({loss(y[0], y[1])}, {x, a, b});
  const auto torchs = torch::autograd::grad({loss(at::linear(x, a), at::linear(x, b))}, {x, a, b});
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_LT(Distance(ours[i], torchs[i]), 1e-12) << i;
}

TEST(Projections, FollowTheirWeights) {
  const at::Tensor weight = Draw({4, 6}, 1).to(at::kFloat), x = Draw({2, 6}, 2).to(at::kFloat);
  const Projections layer({weight});
  const Bf16Scope scope(true);
  const at::Tensor before = layer.One(x);
  EXPECT_EQ(before.scalar_type(), at::kBFloat16);
  weight.mul_(2);
  EXPECT_TRUE(at::equal(layer.One(x), before * 2));
}

TEST(Projections, TakeNeighbouringColumnsAsTheyAre) {
  const at::Tensor x = Draw({3, 6}, 1).to(at::kFloat).requires_grad_();
  const at::Tensor a = Draw({8, 6}, 2).to(at::kFloat), b = Draw({8, 6}, 3).to(at::kFloat);
  const std::vector<at::Tensor> y = Projections({a, b})(x);
  const at::Tensor ours = torch::autograd::grad({SiluTimes(y[0], y[1]).sum()}, {x})[0];
  const at::Tensor torchs =
      torch::autograd::grad({(at::silu(at::linear(x, a)) * at::linear(x, b)).sum()}, {x})[0];
  EXPECT_LT(Distance(ours, torchs), 1e-6);
}

at::Tensor OnMeta(at::IntArrayRef shape) { return at::empty(shape, at::device(at::kMeta)); }

// Kernels read host memory: a tensor elsewhere beside one that is there gets a sentence, not a crash.
TEST(Layers, RefuseTensorsOfOtherDevices) {
  const auto expect_refused = [](const char* name, const auto& run) {
    try {
      run();
      ADD_FAILURE() << name << " took a meta tensor";
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      EXPECT_NE(text.find(name), std::string::npos) << text;
      EXPECT_NE(text.find("move them to one device"), std::string::npos) << text;
      EXPECT_NE(text.find("meta"), std::string::npos) << text;
    }
  };
  const at::Tensor x = OnMeta({1, 4, 8}), row = OnMeta({8}), filter = OnMeta({8, 4});
  const at::Tensor here = at::ones({1, 4, 8}), ids = OnMeta({4}).to(at::kLong);
  expect_refused("[rms_norm]", [&] { RmsNorm(here, row, 1e-6); });
  expect_refused("[rms_norm]", [&] { RmsNorm(x, at::ones({8}), 1e-6); });
  expect_refused("[add_rms_norm]", [&] { AddRmsNorm(here, x, at::ones({8}), 1e-6); });
  expect_refused("[causal_conv]", [&] { CausalConv(here, filter, row, {}); });
  expect_refused("[silu_times]", [&] { SiluTimes(here, x); });
  expect_refused("[gated_layer_norm]", [&] { GatedLayerNorm(here, here, row, row, 1e-6); });
  expect_refused("[unit_convs]", [&] { UnitConvs(here, {filter, row}, {filter, row}, 4, 1e-6, {}); });
  expect_refused("[linear_cross_entropy]", [&] { LinearCrossEntropy(here[0], at::ones({9, 8}), ids); });
}

TEST(Layers, GiveShapesWithoutData) {
  const at::Tensor x = OnMeta({1, 4, 8}), row = OnMeta({8}), filter = OnMeta({8, 4});
  EXPECT_EQ(RmsNorm(x, row, 1e-6).sizes(), x.sizes());
  EXPECT_EQ(AddRmsNorm(x, x, row, 1e-6, true).second.scalar_type(), at::kBFloat16);
  EXPECT_EQ(UnitVectors(x, 1e-6).sizes(), x.sizes());
  EXPECT_EQ(CausalConv(x, filter, row, {}).sizes(), x.sizes());
  EXPECT_EQ(SiluTimes(x, x).sizes(), x.sizes());
  EXPECT_EQ(GatedLayerNorm(x, x, row, row, 1e-6).sizes(), x.sizes());
  EXPECT_EQ(UnitConvs(x, {filter, row}, {filter, row}, 4, 1e-6).second.sizes(), x.sizes());
  EXPECT_EQ(LinearCrossEntropy(x[0], OnMeta({9, 8}), OnMeta({4}).to(at::kLong)).dim(), 0);
}

// Packed sequences are what they are alone, gradients included.
TEST(CausalConv, OfPackedSequencesEqualsThoseOfEach) {
  const std::vector<int64_t> starts = {0, 70, 70, 73, 100};
  const at::Tensor cu = at::tensor(starts), x = Draw({1, 100, 6}, 1), past = Draw({4, 3, 6}, 2);
  const at::Tensor weight = Draw({6, 4}, 3), bias = Draw({6}, 4), dy = Draw({1, 100, 6}, 5);
  const auto run = [&](bool packed) {
    const variable_list leaves = {x.clone().requires_grad_(), weight.clone().requires_grad_(),
                                  bias.clone().requires_grad_()};
    at::Tensor y;
    if (packed) {
      y = CausalConv(leaves[0], leaves[1], leaves[2], past, cu);
    } else {
      std::vector<at::Tensor> parts;
      for (size_t n = 0; n + 1 < starts.size(); ++n) {
        if (starts[n] == starts[n + 1]) continue;
        parts.push_back(CausalConv(leaves[0].narrow(1, starts[n], starts[n + 1] - starts[n]), leaves[1],
                                   leaves[2], past.narrow(0, static_cast<int64_t>(n), 1)));
      }
      y = at::cat(parts, 1);
    }
    variable_list all = torch::autograd::grad({(y * dy).sum()}, leaves);
    all.push_back(y);
    return all;
  };
  const variable_list got = run(true), expected = run(false);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(Distance(got[i], expected[i]), 1e-14) << i;
}

// The past has a gradient where it is asked for.
TEST(CausalConv, OfASplitSequenceHasTheGradientsOfTheWhole) {
  const at::Tensor weight = Draw({6, 4}, 3), bias = Draw({6}, 4), dy = Draw({2, 9, 6}, 5);
  const auto gradient = [&](bool split) {
    const at::Tensor x = Draw({2, 9, 6}, 1).requires_grad_();
    const at::Tensor first = x.narrow(1, 0, 5), rest = x.narrow(1, 5, 4);
    const at::Tensor y =
        split
            ? at::cat(
                  {CausalConv(first, weight, bias), CausalConv(rest, weight, bias, first.narrow(1, 2, 3))}, 1)
            : CausalConv(x, weight, bias);
    return torch::autograd::grad({(y * dy).sum()}, {x})[0];
  };
  EXPECT_LT(Distance(gradient(true), gradient(false)), 1e-14);
}

TEST(AddRmsNorm, EqualsItsPartsInEveryType) {
  const at::Tensor x = Draw({3, 7, 37}, 1), delta = Draw({3, 7, 37}, 2), weight = Draw({37}, 3);
  const at::Tensor gs = Draw({3, 7, 37}, 4), gy = Draw({3, 7, 37}, 5);
  const at::Tensor sum = (x + delta).requires_grad_(), w = weight.clone().requires_grad_();
  const at::Tensor y = sum / (sum.square().mean(-1, true) + 1e-5).sqrt() * w;
  const auto expected = torch::autograd::grad({(y * gy).sum() + (sum * gs).sum()}, {sum, w});
  for (const auto& [type, narrow, bound] : {std::tuple{at::kDouble, at::kDouble, 1e-12},
                                            {at::kFloat, at::kFloat, 1e-6},
                                            {at::kFloat, at::kBFloat16, 4e-3}}) {
    const at::Tensor x1 = x.to(type).requires_grad_(), d1 = delta.to(narrow).requires_grad_();
    const at::Tensor w1 = weight.to(type).requires_grad_();
    const auto [s1, y1] = AddRmsNorm(x1, d1, w1, 1e-5, narrow == at::kBFloat16);
    EXPECT_EQ(y1.scalar_type(), narrow);
    EXPECT_LT(Distance(s1, sum), bound);
    EXPECT_LT(Distance(y1, y), bound);
    const auto grads =
        torch::autograd::grad({(y1 * gy.to(narrow)).sum() + (s1 * gs.to(type)).sum()}, {x1, d1, w1});
    EXPECT_LT(Distance(grads[0], expected[0]), bound);
    EXPECT_LT(Distance(grads[1], expected[0]), bound);
    EXPECT_LT(Distance(grads[2], expected[1]), bound);
  }
}

TEST(GatedLayerNorm, EqualsItsPartsInEveryType) {
  const at::Tensor inputs[] = {Draw({3, 70, 37}, 1), Draw({3, 70, 37}, 2) * 3, Draw({37}, 3), Draw({37}, 4)};
  const at::Tensor dy = Draw({3, 70, 37}, 5);
  const auto run = [&](at::ScalarType type, at::ScalarType narrow, bool parts) {
    variable_list leaves;
    for (const at::Tensor& input : inputs) {
      leaves.push_back(input.to(leaves.size() == 1 ? narrow : type).requires_grad_());
    }
    const at::Tensor y =
        parts ? at::gelu(leaves[1]) * at::layer_norm(leaves[0], {37}, leaves[2], leaves[3], 1e-5)
              : GatedLayerNorm(leaves[0], leaves[1], leaves[2], leaves[3], 1e-5);
    variable_list all = torch::autograd::grad({(y * dy.to(y.scalar_type())).sum()}, leaves);
    all.push_back(y);
    return all;
  };
  const variable_list expected = run(at::kDouble, at::kDouble, true);
  for (const auto& [narrow, bound] : {std::pair{at::kFloat, 2e-6}, {at::kBFloat16, 6e-3}}) {
    const variable_list got = run(at::kFloat, narrow, false);
    EXPECT_EQ(got[4].scalar_type(), narrow);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(Distance(got[i], expected[i]), bound) << i;
  }
}

TEST(UnitConvs, EqualTheirPartsInEveryType) {
  // More tokens than a tile, channels that fill no whole vector, and vectors of 9 of them.
  const at::Tensor x = Draw({2, 70, 27}, 1), past = Draw({2, 3, 27}, 2);
  const at::Tensor filters[] = {Draw({27, 4}, 3), Draw({27}, 4), Draw({27, 4}, 5), Draw({27}, 6)};
  const at::Tensor gq = Draw({2, 70, 27}, 7), gk = Draw({2, 70, 27}, 8);
  for (const auto& [type, bound] : {std::pair{at::kFloat, 2e-6}, {at::kBFloat16, 6e-3}}) {
    for (const bool from_past : {false, true}) {
      const at::Tensor rounded = x.to(type), before = past.to(type);
      const auto run = [&](bool parts) {
        variable_list leaves = {rounded.to(parts ? at::kDouble : type).requires_grad_()};
        for (const at::Tensor& filter : filters) {
          leaves.push_back(filter.to(parts ? at::kDouble : at::kFloat).requires_grad_());
        }
        std::optional<at::Tensor> earlier;
        if (from_past) earlier = before.to(leaves[1].scalar_type());
        std::pair<at::Tensor, at::Tensor> y;
        if (parts) {
          const auto part = [&](size_t i) {
            const at::Tensor c = CausalConv(leaves[0], leaves[i], leaves[i + 1], earlier);
            return UnitVectors(c.view({2, 70, 3, 9}), kUnitEps).flatten(2);
          };
          y = {part(1), part(3)};
        } else {
          y = UnitConvs(leaves[0], {leaves[1], leaves[2]}, {leaves[3], leaves[4]}, 9, kUnitEps, earlier);
        }
        const auto of = [&](const at::Tensor& g) { return g.to(y.first.scalar_type()); };
        variable_list all =
            torch::autograd::grad({(y.first * of(gq)).sum() + (y.second * of(gk)).sum()}, leaves);
        all.insert(all.end(), {y.first, y.second});
        return all;
      };
      const variable_list expected = run(true), got = run(false);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(Distance(got[i], expected[i]), bound) << i;
    }
  }
}

TEST(Bf16, GradientsStayNearFloat32) {
  for (const std::string mixer : {"lattice_dec", "transformer"}) {
    model::ModelConfig config;
    config.mixer = mixer;
    config.vocab_size = 61;
    config.layers = 2;
    config.width = 32;
    config.heads = 2;
    LanguageModel lm(config, 8);
    const at::Tensor tokens = (at::arange(66, at::kLong) * 37 + 11).remainder(61).view({2, 33});
    const auto gradients = [&](bool bf16) {
      lm.SetBf16(bf16);
      torch::autograd::backward({lm.Loss(lm.Forward(tokens.narrow(1, 0, 32)), tokens.narrow(1, 1, 32))}, {});
      std::vector<at::Tensor> all;
      for (const Parameter& parameter : lm.parameters()) {
        all.push_back(parameter.value.grad().flatten());
        parameter.value.mutable_grad() = at::Tensor();
      }
      return at::cat(all);
    };
    const at::Tensor exact = gradients(false);
    EXPECT_LT(Distance(gradients(true), exact), 0.02) << mixer;
  }
}

}  // namespace
}  // namespace lattice::nn
