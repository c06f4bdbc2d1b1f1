// Conversions of a tiny Transformer: what is taken over, what each stage learns, and that stages resume.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "distill/divergence.h"
#include "distill/imitation.h"
#include "distill/matching.h"
#include "distill/student.h"
#include "io/file.h"
#include "io/testing.h"
#include "model/checkpoint.h"
#include "train/trainer_testing.h"

namespace lattice::distill {
namespace {

using io::ErrorOf;
using io::Says;

model::ModelConfig TeacherConfig() {
  model::ModelConfig config;
  config.mixer = "transformer";
  config.vocab_size = 257;
  config.layers = 2;
  config.width = 32;
  config.heads = 4;
  config.kv_heads = 2;
  config.init_std = 0.3;
  return config;
}

model::ModelConfig Student(const std::string& mixer, int64_t kv_heads = 0) {
  model::ModelConfig config;
  config.mixers = mixer;
  config.block = model::BlockKind::kAttention;
  config.window = 4;
  config.sinks = 1;
  config.kv_heads = kv_heads;
  return StudentConfig(config, TeacherConfig());
}

Teacher MakeTeacher() { return std::make_shared<nn::LanguageModel>(TeacherConfig(), 5); }

at::Tensor Tokens(int64_t rows, int64_t length) {
  return (at::arange(rows * length, at::kLong) * 37 + 11).remainder(61).view({rows, length});
}

// As long as nothing has left the window, a student with the teacher's weights is the teacher, with repeated keys too.
TEST(Student, TakesOverTheTeacher) {
  const c10::NoGradGuard no_grad;
  const Teacher teacher = MakeTeacher();
  for (const int64_t kv_heads : {0, 4}) {
    const nn::LanguageModel student(Student("lattice_dec+window, transformer", kv_heads), 6);
    TakeOver(*teacher, student);
    const at::Tensor tokens = Tokens(2, 9);
    const at::Tensor expected = teacher->Forward(tokens), got = student.Forward(tokens);
    EXPECT_LT((got - expected).narrow(1, 0, 5).abs().max().item<float>(), 1e-5f);
    EXPECT_GT((got - expected).narrow(1, 5, 4).abs().max().item<float>(), 1e-3f);
  }
}

TEST(Student, RefusesWhatCannotBeTakenOver) {
  model::ModelConfig paper;
  EXPECT_TRUE(Says(ErrorOf([&] { StudentConfig(paper, TeacherConfig()); }), {"block", "attention"}));
  EXPECT_TRUE(Says(ErrorOf([&] { Student("lattice_dec", 1); }), {"kv_heads = 1", "multiple"}));
  EXPECT_TRUE(Says(ErrorOf([&] { Student("mamba2"); }), {"mamba2"}));
}

TEST(Student, LearnsWhatItShould) {
  const nn::LanguageModel student(Student("lattice_dec+window, transformer"), 6);
  const auto learned = [&](Learns learns) {
    Freeze(student, learns);
    std::vector<std::string> names;
    for (const nn::Parameter& parameter : student.parameters()) {
      if (parameter.value.requires_grad()) names.push_back(parameter.info.name);
    }
    return names;
  };
  for (const std::string& name : learned(Learns::kMixers))
    EXPECT_TRUE(name.starts_with("blocks.0.mixer.")) << name;
  EXPECT_EQ(learned(Learns::kMixers).size(), learned(Learns::kNew).size() + 4);
  for (const std::string& name : learned(Learns::kAll)) EXPECT_TRUE(name.starts_with("blocks.")) << name;
}

TEST(Divergence, IsTheKlOfThePredictionsWithItsGradient) {
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor h = at::sin(at::arange(12, options) * 1.3).view({3, 4}).requires_grad_();
  const at::Tensor t = at::cos(at::arange(12, options) * 0.7).view({3, 4});
  const at::Tensor w = at::sin(at::arange(20, options) * 2.1).view({5, 4}),
                   v = at::cos(at::arange(20, options)).view({5, 4});
  const auto plain = [&](const at::Tensor& x) {
    const at::Tensor p = at::log_softmax(at::linear(t, v), -1), q = at::log_softmax(at::linear(x, w), -1);
    return (p.exp() * (p - q)).sum() / 3;
  };
  const at::Tensor loss = Divergence(h, w, t, v);
  EXPECT_NEAR(loss.item<double>(), plain(h).item<double>(), 1e-12);
  loss.backward();
  const at::Tensor ours = h.grad().clone();
  h.mutable_grad().reset();
  plain(h).backward();
  EXPECT_LT((ours - h.grad()).abs().max().item<double>(), 1e-12);
}

// Gradients of both objectives reach exactly what learns, and are those of the loss.
TEST(Objectives, GradientsMatchFiniteDifferences) {
  const Teacher teacher = MakeTeacher();
  const at::Tensor tokens = Tokens(2, 12);
  Imitation imitation(TeacherLayers(teacher), Learns::kMixers);
  Matching matching(teacher, Learns::kAll, 0.5);
  for (train::Objective* objective :
       {static_cast<train::Objective*>(&imitation), static_cast<train::Objective*>(&matching)}) {
    const nn::LanguageModel student(Student("gated_deltanet+window, lattice_dec"), 6);
    objective->Prepare(student);
    objective->Start(student);
    objective->Backward(student, tokens, tokens, 1);  // calibrates
    for (const nn::Parameter& parameter : student.parameters()) {
      at::Tensor value = parameter.value;
      value.mutable_grad().reset();
    }
    objective->Backward(student, tokens, tokens, 1);
    // Taken before the losses below add to them.
    std::map<std::string, at::Tensor> gradients;
    for (const nn::Parameter& parameter : student.parameters()) {
      ASSERT_EQ(parameter.value.grad().defined(), parameter.value.requires_grad()) << parameter.info.name;
      if (parameter.value.requires_grad()) gradients[parameter.info.name] = parameter.value.grad().clone();
    }
    for (const nn::Parameter& parameter : student.parameters()) {
      at::Tensor value = parameter.value;
      if (!value.requires_grad() || !parameter.info.name.ends_with("amplitude")) continue;
      const at::Tensor gradient = gradients.at(parameter.info.name), direction = gradient / gradient.norm();
      const auto loss_at = [&](double shift) {
        {
          const c10::NoGradGuard no_grad;
          value.add_(direction, shift);
        }
        const double loss = objective->Backward(student, tokens, tokens, 1);
        const c10::NoGradGuard no_grad;
        value.add_(direction, -shift);
        return loss;
      };
      constexpr double kStep = 1e-2;
      const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
      EXPECT_NEAR(slope, gradient.norm().item<double>(), 0.02 * std::abs(slope) + 1e-5)
          << parameter.info.name;
    }
  }
}

// An error of the first tokens, which a taken-over student has not, is a term of its own beside the mean over all tokens.
TEST(Imitation, FirstTokensCountByThemselves) {
  const Teacher teacher = MakeTeacher();
  const at::Tensor tokens = Tokens(2, 64);
  const nn::LanguageModel student(Student("lattice_dec+window"), 6);
  Imitation imitation(TeacherLayers(teacher), Learns::kMixers);
  imitation.Prepare(student);
  imitation.Start(student);
  const auto beyond_the_mean = [&] {
    const double loss = imitation.Backward(student, tokens, tokens, 1);
    const std::vector<double> errors = imitation.TakeFigures().at("layer_errors");
    return loss - std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  };
  EXPECT_NEAR(beyond_the_mean(), 0, 1e-9);
  {
    const c10::NoGradGuard no_grad;
    for (const nn::Parameter& parameter : student.parameters()) {
      at::Tensor value = parameter.value;
      if (parameter.info.name == "blocks.1.mixer.out.weight") value.mul_(1.5);
    }
  }
  EXPECT_NEAR(beyond_the_mean(), 0.25 / 2, 1e-5);  // half of what it should be too much, in one of two layers
}

// In bf16 the losses are those of float32 up to the rounding of products, and so are the gradients.
TEST(Objectives, Bf16StaysClose) {
  const Teacher teacher = MakeTeacher();
  const at::Tensor tokens = Tokens(2, 24);
  Imitation imitation(TeacherLayers(teacher), Learns::kMixers);
  Matching matching(teacher, Learns::kAll, 0.5);
  for (train::Objective* objective :
       {static_cast<train::Objective*>(&imitation), static_cast<train::Objective*>(&matching)}) {
    std::vector<double> losses;
    std::vector<at::Tensor> gradients;
    for (const bool bf16 : {false, true}) {
      nn::LanguageModel student(Student("lattice_dec+window, gated_deltanet"), 6);
      student.SetBf16(bf16);
      objective->Prepare(student);
      objective->Start(student);
      losses.push_back(objective->Backward(student, tokens, tokens, 1));
      std::vector<at::Tensor> all;
      for (const nn::Parameter& parameter : student.parameters()) {
        if (parameter.value.requires_grad()) all.push_back(parameter.value.grad().flatten());
      }
      gradients.push_back(at::cat(all));
    }
    EXPECT_NE(losses[0], losses[1]);
    EXPECT_NEAR(losses[1], losses[0], 0.01 * losses[0]);
    EXPECT_LT((gradients[1] - gradients[0]).norm().item<double>(), 0.03 * gradients[0].norm().item<double>());
  }
}

// A cache changes no bit, holds what was wanted, and is made again where it is damaged or has other layers.
TEST(TeacherLayers, CacheGivesTheSameBits) {
  const io::TestDir dir;
  const Teacher teacher = MakeTeacher();
  teacher->SaveWeights(dir / model::kWeightsFile);
  io::WriteFileAtomic(dir / model::kConfigFile, model::ModelToJson(teacher->config()));
  const at::Tensor tokens = Tokens(2, 9), others = Tokens(3, 9);
  const auto run = [](TeacherLayers& layers, const at::Tensor& ids, const TeacherLayers::Layers& wanted) {
    std::vector<at::Tensor> out;
    layers.Run(ids, wanted, [&](int64_t layer, const at::Tensor& u, const at::Tensor& y) {
      out.insert(out.end(), {at::tensor(layer), u.clone(), y.clone()});
    });
    return out;
  };
  const auto equal = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const at::Tensor& x, const at::Tensor& y) { return x.equal(y); });
  };
  const auto files = [&] {
    return std::vector<std::filesystem::path>(std::filesystem::directory_iterator(dir / "cache"), {});
  };
  TeacherLayers plain(teacher), cached(teacher, dir.path(), {dir / "cache", int64_t{1} << 20});
  const auto both = run(plain, tokens, {0, 1}), second = run(plain, tokens, {1});
  EXPECT_TRUE(equal(run(cached, tokens, {1}), second));
  EXPECT_EQ(files().size(), 1u);
  EXPECT_TRUE(equal(run(cached, tokens, {0, 1}), both));
  EXPECT_TRUE(equal(run(cached, tokens, {0, 1}), both));
  EXPECT_TRUE(equal(run(cached, tokens, {1}), second));
  EXPECT_EQ(files().size(), 1u);
  io::WriteFileAtomic(files()[0], "damaged");
  EXPECT_TRUE(equal(run(cached, tokens, {0, 1}), both));
  EXPECT_TRUE(equal(run(cached, others, {0, 1}), run(plain, others, {0, 1})));
  EXPECT_EQ(files().size(), 2u);
  TeacherLayers full(teacher, dir.path(), {dir / "cache", 1});
  EXPECT_TRUE(equal(run(full, Tokens(1, 9), {0}), run(plain, Tokens(1, 9), {0})));
  EXPECT_EQ(files().size(), 2u) << "beyond its limit nothing is kept";
}

class Conversion : public train::TinyTraining {
 protected:
  Conversion() {
    request_.config.model = Student("lattice_dec+window");
    request_.config.train.steps = 8;
    request_.config.train.lr = 3e-3;
    request_.config.train.weight_decay = 0;
    request_.config.train.spike = model::SpikePolicy::kOff;
  }

  // Two stages into one run each; `stop` cuts the first in two.
  std::string Weights(const std::string& name, bool stop) {
    const Teacher teacher = MakeTeacher();
    request_.objective = std::make_shared<Imitation>(TeacherLayers(teacher), Learns::kMixers);
    const train::TrainResult first = Run(name, 4);
    if (stop) {
      request_.objective = std::make_shared<Imitation>(TeacherLayers(teacher), Learns::kMixers);
      Run(name, 4, {dir_ / name / "checkpoints" / "step-4"});
    }
    losses_.push_back(first.loss);
    return train::TinyTraining::Weights(dir_ / name / "checkpoints" / "latest");
  }

  std::vector<double> losses_;
};

TEST_F(Conversion, LearnsAndResumesToTheSameBits) {
  const std::string whole = Weights("whole", false), resumed = Weights("resumed", true);
  EXPECT_EQ(whole, resumed);
  const std::string metrics = io::ReadFile(dir_ / "whole" / "metrics.jsonl");
  EXPECT_NE(metrics.find("valid_perplexity"), std::string::npos);
  const size_t at = metrics.find("\"loss\":");
  EXPECT_LT(losses_[0], std::stod(metrics.substr(at + 7))) << "the error of the imitation falls";
}

}  // namespace
}  // namespace lattice::distill
