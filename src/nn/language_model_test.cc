#include "nn/language_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "model/testing.h"
#include "nn/flat_states.h"

namespace lattice::nn {
namespace {

model::ModelConfig TinyConfig(std::string_view mixer) {
  model::ModelConfig config;
  config.vocab_size = 61;
  config.layers = 2;
  config.width = 24;
  config.heads = 2;
  return model::WithMixers(config, mixer, 8);
}

at::Tensor Tokens(int64_t B, int64_t T) {
  // A fixed sequence without torch's generator: every run and thread count sees the same.
  return (at::arange(B * T, at::kLong) * 37 + 11).remainder(61).view({B, T});
}

class EveryMixer : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Registry, EveryMixer, testing::ValuesIn(model::MixersAndStacks()),
                         [](const auto& mixer) { return model::TestName(mixer.param); });

TEST_P(EveryMixer, StepByStepEqualsOnePass) {
  at::NoGradGuard no_grad;
  const LanguageModel lm(TinyConfig(GetParam()), 1);
  const at::Tensor tokens = Tokens(2, 11);
  const at::Tensor whole = lm.Logits(lm.Forward(tokens));
  States states;
  std::vector<at::Tensor> parts;
  for (const auto& [first, n] : {std::pair{0, 1}, {1, 2}, {3, 5}, {8, 1}, {9, 2}}) {
    parts.push_back(lm.Logits(lm.Forward(tokens.narrow(1, first, n), &states)));
  }
  EXPECT_LT((at::cat(parts, 1) - whole).abs().max().item<float>(), 2e-5f);
}

TEST_P(EveryMixer, IsCausal) {
  at::NoGradGuard no_grad;
  const LanguageModel lm(TinyConfig(GetParam()), 2);
  const at::Tensor tokens = Tokens(1, 9), changed = tokens.clone();
  changed[0][6] = 3;
  const at::Tensor a = lm.Forward(tokens), b = lm.Forward(changed);
  EXPECT_TRUE(at::equal(a.narrow(1, 0, 6), b.narrow(1, 0, 6)));
  EXPECT_FALSE(at::equal(a.narrow(1, 6, 3), b.narrow(1, 6, 3)));
}

// Directional derivative of the loss in float64 against the gradients of autograd and our own operators.
TEST_P(EveryMixer, GradientsMatchFiniteDifferences) {
  LanguageModel lm(TinyConfig(GetParam()), 3, at::kDouble);
  const at::Tensor tokens = Tokens(2, 13), inputs = tokens.narrow(1, 0, 12),
                   targets = tokens.narrow(1, 1, 12);
  torch::autograd::backward({lm.Loss(lm.Forward(inputs), targets)}, {});
  for (const Parameter& parameter : lm.parameters()) {
    ASSERT_TRUE(parameter.value.grad().defined()) << parameter.info.name;
    const at::Tensor direction =
        at::sin(at::arange(parameter.value.numel(), at::kDouble) * 1.7 + 0.3).view(parameter.value.sizes());
    const double slope = (parameter.value.grad() * direction).sum().item<double>();
    at::NoGradGuard no_grad;
    constexpr double kStep = 1e-5;
    const auto loss_at = [&](double shift) {
      parameter.value.add_(direction, shift);
      const double loss = lm.Loss(lm.Forward(inputs), targets).item<double>();
      parameter.value.add_(direction, -shift);
      return loss;
    };
    const double numeric = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    EXPECT_NEAR(slope, numeric, 1e-6 + 1e-5 * std::abs(numeric)) << parameter.info.name;
  }
}

TEST_P(EveryMixer, RecomputingGivesTheSameGradients) {
  LanguageModel lm(TinyConfig(GetParam()), 4);
  const at::Tensor tokens = Tokens(2, 9), inputs = tokens.narrow(1, 0, 8), targets = tokens.narrow(1, 1, 8);
  torch::autograd::backward({lm.Loss(lm.Forward(inputs), targets)}, {});
  std::vector<at::Tensor> plain;
  for (const Parameter& parameter : lm.parameters()) {
    plain.push_back(parameter.value.grad().clone());
    parameter.value.mutable_grad() = at::Tensor();
  }
  torch::autograd::backward({lm.Loss(lm.Forward(inputs, nullptr, /*recompute=*/true), targets)}, {});
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(at::allclose(plain[i], lm.parameters()[i].value.grad(), 1e-5, 1e-7))
        << lm.parameters()[i].info.name;
  }
}

// A sequence in pieces, with nothing between them but flat states and their gradients, as between processes.
TEST_P(EveryMixer, PiecesHaveTheGradientsOfTheWholeSequence) {
  LanguageModel lm(TinyConfig(GetParam()), 9, at::kDouble);
  const std::vector<int64_t> ends = {0, 2, 9, 40, 77};
  const at::Tensor tokens = Tokens(2, 78);
  const auto targets = [&](int64_t first, int64_t last) { return tokens.slice(1, first + 1, last + 1); };
  const at::Tensor whole = lm.Loss(lm.Forward(tokens.slice(1, 0, 77)), targets(0, 77));
  torch::autograd::backward({whole}, {});
  std::vector<at::Tensor> expected;
  for (const Parameter& parameter : lm.parameters()) {
    expected.push_back(parameter.value.grad().clone());
    parameter.value.mutable_grad() = at::Tensor();
  }

  std::vector<at::Tensor> losses;
  std::vector<FlatStates> initial, final;
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    States states(2);
    for (BlockState& state : states) state.attached = true;
    if (i > 0) {
      initial.push_back({final.back().layout, final.back().values.detach().clone().requires_grad_()});
      EXPECT_EQ(final.back().layout.numel(), LayoutLength(lm));
      EXPECT_EQ(final.back().values.numel(), ValuesLength(lm, final.back().layout));
      states = Unflatten(lm, initial.back());
    }
    const at::Tensor hidden = lm.Forward(tokens.slice(1, ends[i], ends[i + 1]), &states);
    const double share = static_cast<double>(ends[i + 1] - ends[i]) / 77;
    losses.push_back(lm.Loss(hidden, targets(ends[i], ends[i + 1])) * share);
    final.push_back(Flatten(lm, states));
  }
  double loss = 0;
  for (size_t i = losses.size(); i-- > 0;) {
    loss += losses[i].item<double>();
    torch::autograd::variable_list roots = {losses[i]}, gradients = {at::ones_like(losses[i])};
    if (i + 1 < losses.size()) {
      roots.push_back(final[i].values);
      gradients.push_back(initial[i].values.grad());
    }
    torch::autograd::backward(roots, gradients);
  }
  EXPECT_NEAR(loss, whole.item<double>(), 1e-10);
  for (size_t i = 0; i < expected.size(); ++i) {
    const at::Tensor difference = (lm.parameters()[i].value.grad() - expected[i]).abs().max();
    EXPECT_LT(difference.item<double>(), 1e-9 * (1 + expected[i].abs().max().item<double>()))
        << lm.parameters()[i].info.name;
  }
}

TEST(FlatStates, RefuseALayoutOfAnotherModel) {
  const LanguageModel lm(TinyConfig("lattice_dec"), 1);
  States states;
  lm.Forward(Tokens(1, 4), &states);
  FlatStates flat = Flatten(lm, states);
  const at::Tensor layout = flat.layout;
  EXPECT_THROW(ValuesLength(lm, layout.slice(0, 1).contiguous()), Error);
  for (const int64_t dimensions : {-2, 5, 1000}) {
    flat.layout = layout.clone();
    flat.layout[1] = dimensions;
    EXPECT_THROW(Unflatten(lm, flat), Error);
  }
  flat.layout = layout.clone();
  flat.layout.slice(0, 2, 6).fill_(int64_t{1} << 40);
  EXPECT_THROW(ValuesLength(lm, flat.layout), Error);
}

TEST_P(EveryMixer, WeightsSurviveTheFile) {
  const auto path =
      std::filesystem::path(testing::TempDir()) / (model::TestName(GetParam()) + ".safetensors");
  const LanguageModel saved(TinyConfig(GetParam()), 5);
  saved.SaveWeights(path);
  LanguageModel loaded(TinyConfig(GetParam()), 6);
  loaded.LoadWeights(path);
  for (size_t i = 0; i < saved.parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(saved.parameters()[i].value, loaded.parameters()[i].value));
  }
  std::filesystem::remove(path);
}

TEST(Loss, EqualsTorchAndSkipsNegativeTargets) {
  const LanguageModel lm(TinyConfig("deltanet"), 7);
  const at::Tensor tokens = Tokens(3, 8), targets = tokens.clone();
  targets[1][2] = -1;
  targets[2][7] = -1;
  const at::Tensor hidden = lm.Forward(tokens);
  const at::Tensor ours = lm.Loss(hidden, targets);
  const at::Tensor torchs =
      at::cross_entropy_loss(lm.Logits(hidden).flatten(0, 1), targets.flatten(), {}, at::Reduction::Mean, -1);
  EXPECT_NEAR(ours.item<double>(), torchs.item<double>(), 1e-6);
  const at::Tensor each = lm.TokenLosses(hidden, targets);
  EXPECT_NEAR(each.sum().item<double>() / 22, torchs.item<double>(), 1e-5);
  EXPECT_EQ(each[1][2].item<float>(), 0);
  EXPECT_THROW(lm.Loss(hidden, at::full_like(targets, -1)), c10::Error);
}

TEST(Bf16, StaysNearFloat32) {
  at::NoGradGuard no_grad;
  LanguageModel lm(TinyConfig("lattice_dec"), 8);
  const at::Tensor tokens = Tokens(2, 16);
  const at::Tensor exact = lm.Logits(lm.Forward(tokens));
  lm.SetBf16(true);
  const at::Tensor rounded = lm.Logits(lm.Forward(tokens));
  EXPECT_EQ(rounded.scalar_type(), at::kFloat);
  EXPECT_LT((rounded - exact).abs().max().item<float>(), 0.02f);
}

}  // namespace
}  // namespace lattice::nn
