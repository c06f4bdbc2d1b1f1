#include "train/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/random.h"
#include "io/testing.h"

namespace lattice::train {
namespace {

model::ModelConfig SmallModel() {
  model::ModelConfig config;
  config.vocab_size = 257;
  config.layers = 1;
  config.width = 32;
  config.heads = 2;
  return config;
}

void FillGradients(const nn::LanguageModel& model, uint64_t seed, float deviation) {
  for (const nn::Parameter& parameter : model.parameters()) {
    at::Tensor gradient = at::empty_like(parameter.value);
    Random(seed, static_cast<uint64_t>(parameter.value.numel()))
        .FillNormal({gradient.mutable_data_ptr<float>(), static_cast<size_t>(gradient.numel())}, 0,
                    deviation);
    at::Tensor value = parameter.value;
    value.mutable_grad() = gradient;
  }
}

// AdamW in float64 for one element.
struct Reference {
  double value, m = 0, v = 0;

  void Step(const model::TrainConfig& config, double gradient, double lr, double decay, int64_t step) {
    m = config.beta1 * m + (1 - config.beta1) * gradient;
    v = config.beta2 * v + (1 - config.beta2) * gradient * gradient;
    const double m_hat = m / (1 - std::pow(config.beta1, static_cast<double>(step)));
    const double v_hat = v / (1 - std::pow(config.beta2, static_cast<double>(step)));
    value = value * (1 - lr * decay) - lr * m_hat / (std::sqrt(v_hat) + config.adam_eps);
  }
};

TEST(AdamW, MatchesTheFormulaWithClippingAndBothGroups) {
  const nn::LanguageModel model(SmallModel(), 1);
  model::TrainConfig config;
  AdamW optimizer(model, config);
  std::vector<Reference> references;
  for (const nn::Parameter& p : model.parameters())
    references.push_back({p.value.flatten()[0].item<double>()});
  for (int64_t step = 1; step <= 4; ++step) {
    FillGradients(model, static_cast<uint64_t>(step), step == 2 ? 1e-5f : 0.1f);
    const double norm = optimizer.GradientNorm();
    EXPECT_EQ(norm > config.clip, step != 2);
    const double lr = 1e-3 * static_cast<double>(step);
    for (size_t i = 0; i < references.size(); ++i) {
      const nn::Parameter& p = model.parameters()[i];
      const double gradient = p.value.grad().flatten()[0].item<double>() / std::max(1.0, norm / config.clip);
      references[i].Step(config, gradient, lr, p.info.decay ? config.weight_decay : 0, step);
    }
    optimizer.Step(lr, norm);
    optimizer.ZeroGradients();
    for (size_t i = 0; i < references.size(); ++i) {
      const nn::Parameter& p = model.parameters()[i];
      EXPECT_NEAR(p.value.flatten()[0].item<double>(), references[i].value, 2e-6)
          << p.info.name << " step " << step;
      EXPECT_FALSE(p.value.grad().defined());
    }
  }
}

TEST(AdamW, TheNormDoesNotDependOnThreads) {
  const nn::LanguageModel model(SmallModel(), 1);
  const AdamW optimizer(model, {});
  FillGradients(model, 3, 1);
  double expected = 0;
  for (const nn::Parameter& p : model.parameters())
    expected += p.value.grad().to(at::kDouble).square().sum().item<double>();
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double one = optimizer.GradientNorm();
  at::set_num_threads(3);
  EXPECT_EQ(optimizer.GradientNorm(), one);
  at::set_num_threads(threads);
  EXPECT_NEAR(one, std::sqrt(expected), 1e-9 * one);

  at::Tensor value = model.parameters()[3].value;
  value.mutable_grad().flatten()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(optimizer.GradientNorm()));
}

TEST(AdamW, GoesOnFromAFile) {
  const io::TestDir dir;
  const nn::LanguageModel model(SmallModel(), 1);
  AdamW optimizer(model, {});
  FillGradients(model, 3, 1);
  optimizer.Step(1e-3, 1);
  WriteTensors(dir / "o.safetensors", optimizer.Moments());
  std::vector<at::Tensor> before;
  for (const nn::Parameter& p : model.parameters()) before.push_back(p.value.detach().clone());

  optimizer.Step(1e-3, 1);
  AdamW other(model, {});
  other.Load(dir / "o.safetensors", 1);
  std::vector<at::Tensor> after;
  c10::NoGradGuard no_grad;
  for (size_t i = 0; i < before.size(); ++i) {
    after.push_back(model.parameters()[i].value.detach().clone());
    at::Tensor value = model.parameters()[i].value;
    value.copy_(before[i]);
  }
  other.Step(1e-3, 1);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(model.parameters()[i].value, after[i]));

  model::ModelConfig wider = SmallModel();
  wider.width = 64;
  const nn::LanguageModel another(wider, 1);
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { AdamW(another, {}).Load(dir / "o.safetensors", 1); }), {"does not belong"}));
}

// Ranks that each update a share, with the whole gradient at hand, make the step of one.
TEST(AdamW, SharesMakeTheWholeStep) {
  const nn::LanguageModel whole(SmallModel(), 1), divided(SmallModel(), 1);
  constexpr int kRanks = 3;
  const Shares shares(divided.parameters(), kRanks);
  AdamW alone(whole, {});
  std::vector<std::unique_ptr<AdamW>> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.push_back(std::make_unique<AdamW>(divided, model::TrainConfig(), shares.PiecesOf(rank)));
  for (uint64_t step = 0; step < 3; ++step) {
    FillGradients(whole, 3 + step, 1);
    FillGradients(divided, 3 + step, 1);
    alone.Step(1e-3, 1);
    for (const auto& rank : ranks) rank->Step(1e-3, 1);
  }
  for (size_t i = 0; i < whole.parameters().size(); ++i) {
    EXPECT_TRUE(at::allclose(whole.parameters()[i].value, divided.parameters()[i].value, 1e-6, 1e-9))
        << whole.parameters()[i].info.name;
  }
  int64_t bytes = 0;
  for (const auto& rank : ranks) {
    EXPECT_LE(rank->MomentBytes(), 8 * shares.length());
    bytes += rank->MomentBytes();
  }
  EXPECT_EQ(bytes, alone.MomentBytes()) << "every moment is held once";
}

TEST(AdamW, MomentsSavedInOneDivisionLoadInAnother) {
  const io::TestDir dir;
  const nn::LanguageModel model(SmallModel(), 1);
  AdamW alone(model, {});
  FillGradients(model, 5, 1);
  alone.Step(1e-3, 1);
  WriteTensors(dir / "whole.safetensors", alone.Moments());
  const NamedTensors expected = alone.Moments();

  const Shares three(model.parameters(), 3), five(model.parameters(), 5);
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank < 3; ++rank) {
    AdamW part(model, {}, three.PiecesOf(rank));
    part.Load(dir / "whole.safetensors", 1);
    files.push_back(dir / StrCat("part-", rank, ".safetensors"));
    WriteTensors(files.back(), part.Moments());
  }
  AdamW again(model, {});
  again.Load(files, 1);
  for (const auto& [name, tensor] : again.Moments())
    EXPECT_TRUE(at::equal(tensor, expected.at(name))) << name;
  for (int rank = 0; rank < 5; ++rank) EXPECT_NO_THROW(AdamW(model, {}, five.PiecesOf(rank)).Load(files, 1));

  files.pop_back();
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { again.Load(files, 1); }), {"not all of it is there"}));
  files = {dir / "part-0.safetensors", dir / "part-0.safetensors", dir / "part-1.safetensors"};
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { again.Load(files, 1); }), {"does not belong"}));
}

}  // namespace
}  // namespace lattice::train
