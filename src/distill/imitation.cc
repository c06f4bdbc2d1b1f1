#include "distill/imitation.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "base/error.h"
#include "nn/probe.h"

namespace lattice::distill {

void Imitation::Prepare(const nn::LanguageModel& student) {
  Check(teacher_->config().layers == student.config().layers, "[distill] the teacher has ",
        teacher_->config().layers, " layers, the student ", student.config().layers);
  Freeze(student, learns_);
}

void Imitation::Start(const nn::LanguageModel& student) {
  TakeOver(*teacher_, student);
  fresh_ = true;
}

void Imitation::Calibrate(const nn::LanguageModel& student, int64_t layer, const at::Tensor& u) const {
  if (!student.config().HasMemory(layer)) return;
  std::vector<nn::MemoryInputs> traces;
  {
    const c10::NoGradGuard no_grad;
    const nn::ProbeScope probe(traces);
    student.block(layer).Mix(u, nullptr);
  }
  const c10::NoGradGuard no_grad;
  const auto energy = [](const at::Tensor& x) { return x.square().sum({0, 1, 3}); };  // of every head
  const at::Tensor ratio = (energy(traces[0].v) / energy(traces[0].y).clamp_min(1e-12)).sqrt();
  const std::string name = StrCat("blocks.", layer, ".mixer.amplitude");
  for (const nn::Parameter& parameter : student.parameters()) {
    if (parameter.info.name == name)
      parameter.value.copy_(ratio.unsqueeze(1).expand(parameter.value.sizes()));
  }
}

double Imitation::Backward(const nn::LanguageModel& student, const at::Tensor& inputs, const at::Tensor&,
                           double share) {
  const int64_t layers = student.config().layers;
  layer_losses_.assign(static_cast<size_t>(layers), 0);
  int64_t converted = 0;
  for (int64_t i = 0; i < layers; ++i) converted += Converted(student.config(), i) ? 1 : 0;
  Check(converted > 0, "[distill] no layer of the student differs from the teacher's");
  const auto frozen = [](const auto& compute) {
    const c10::NoGradGuard no_grad;
    return compute();
  };
  double total = 0;
  at::Tensor x = frozen([&] { return teacher_->Embed(inputs); });
  for (int64_t i = 0; i < layers; ++i) {
    const nn::Block& block = teacher_->block(i);
    const nn::Block::MixerInput in = frozen([&] { return block.Before(x, nullptr); });
    const at::Tensor y = frozen([&] { return block.Mix(in.u, nullptr); });
    if (Converted(student.config(), i)) {
      if (fresh_) Calibrate(student, i, in.u);
      const at::Tensor error = (student.block(i).Mix(in.u, nullptr) - y).square().sum() / y.square().sum();
      (error * (share / static_cast<double>(converted))).backward();
      layer_losses_[static_cast<size_t>(i)] = error.item<double>();
      total += layer_losses_[static_cast<size_t>(i)];
    }
    x = frozen([&] { return block.After(in.stream, y); });
  }
  fresh_ = false;
  return share * total / static_cast<double>(converted);
}

}  // namespace lattice::distill
