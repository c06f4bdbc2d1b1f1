// Low-rank updates against autograd through W0 + B A, and runs with them that are stopped.
#include "train/low_rank.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <stdexcept>
#include <string>

#include "train/trainer_testing.h"

namespace lattice::train {
namespace {

const nn::Parameter& Named(const std::vector<nn::Parameter>& parameters, const std::string& name) {
  for (const nn::Parameter& parameter : parameters) {
    if (parameter.info.name == name) return parameter;
  }
  throw std::out_of_range(name);
}

TEST(LowRank, GivesTheGradientsOfTheFactorsAndTheirSum) {
  model::ModelConfig config;
  config.vocab_size = 61;
  config.layers = 1;
  config.width = 32;
  const nn::LanguageModel model(config, 3);
  LowRank low_rank(model, 4, 7);
  const std::string name = "blocks.0.mixer.out.weight";
  const at::Tensor whole = Named(model.parameters(), name).value;
  at::Tensor a = Named(low_rank.parameters(), name + ".low_rank_a").value;
  at::Tensor b = Named(low_rank.parameters(), name + ".low_rank_b").value;
  const at::Tensor base = whole.detach().clone();
  {
    const c10::NoGradGuard no_grad;
    b.copy_((at::arange(b.numel()) * 0.7).sin().view(b.sizes()));
  }
  low_rank.Apply();
  EXPECT_TRUE(at::allclose(whole, at::addmm(base, b, a).detach()));

  // The same function of W, once with a gradient of W and once through the factors.
  const at::Tensor x = (at::arange(5 * whole.size(1)) * 1.3).sin().view({5, -1}).to(at::kFloat);
  const auto loss = [&](const at::Tensor& w) { return at::linear(x, w).sin().sum(); };
  const auto wanted = torch::autograd::grad({loss(at::addmm(base, b, a))}, {a, b});
  loss(whole).backward();
  low_rank.TakeGradients();
  EXPECT_TRUE(at::allclose(a.grad(), wanted[0], 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(b.grad(), wanted[1], 1e-4, 1e-5));
  EXPECT_FALSE(whole.grad().defined());
}

class LowRankRun : public TinyTraining {};

TEST_F(LowRankRun, LearnsAndResumesToTheSameBits) {
  request_.low_rank = 4;
  request_.config.train.steps = 8;
  const TrainResult whole = Run("whole", 4);
  Run("cut", 4);
  const std::filesystem::path middle = dir_ / "cut" / "checkpoints" / "step-4";
  Run("cut", 4, {middle});
  EXPECT_EQ(Weights(dir_ / "whole/checkpoints/latest"), Weights(dir_ / "cut/checkpoints/latest"));
  EXPECT_NE(Weights(dir_ / "whole/checkpoints/latest"), Weights(dir_ / "whole/checkpoints/step-4"));
  EXPECT_LT(whole.loss, 6);
  request_.low_rank = 5;
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("cut", 4, {middle}); }), {"low-rank", "began with"}));
}

}  // namespace
}  // namespace lattice::train
