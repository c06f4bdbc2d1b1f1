#include "distill/imitation.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "nn/layers.h"
#include "nn/probe.h"

namespace lattice::distill {
namespace {

// Tokens at the beginning of a sequence that count as much as all others together.
constexpr int64_t kFirstTokens = 4;

TeacherLayers::Layers ConvertedLayers(const model::ModelConfig& student) {
  TeacherLayers::Layers converted;
  for (int64_t i = 0; i < student.layers; ++i) {
    if (Converted(student, i)) converted.push_back(i);
  }
  return converted;
}

at::Tensor RelativeError(const at::Tensor& given, const at::Tensor& wanted) {
  return (given - wanted).square().sum() / wanted.square().sum();
}

at::Tensor FirstTokens(const at::Tensor& x) { return x.narrow(1, 0, std::min(kFirstTokens, x.size(1))); }

}  // namespace

void Imitation::Prepare(const nn::LanguageModel& student) {
  Check(layers_.teacher().config().layers == student.config().layers, "[distill] the teacher has ",
        layers_.teacher().config().layers, " layers, the student ", student.config().layers);
  Check(!ConvertedLayers(student.config()).empty(),
        "[distill] no layer of the student differs from the teacher's");
  Freeze(student, learns_);
}

void Imitation::Start(const nn::LanguageModel& student) {
  TakeOver(layers_.teacher(), student);
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
  const nn::Bf16Scope scope(student.bf16());  // for the teacher too
  layer_errors_.resize(static_cast<size_t>(student.config().layers), 0);
  ++micro_batches_;
  const TeacherLayers::Layers converted = ConvertedLayers(student.config());
  const double part = 1 / static_cast<double>(converted.size());
  double total = 0;
  layers_.Run(inputs, converted, [&](int64_t i, const at::Tensor& u, const at::Tensor& y) {
    if (fresh_) Calibrate(student, i, u);
    const at::Tensor mixed = nn::Wide(student.block(i).Mix(u, nullptr));
    const at::Tensor error = RelativeError(mixed, y);
    const at::Tensor loss = error + RelativeError(FirstTokens(mixed), FirstTokens(y));
    (loss * (share * part)).backward();
    layer_errors_[static_cast<size_t>(i)] += error.item<double>();
    total += loss.item<double>();
  });
  fresh_ = false;
  return share * total * part;
}

train::Objective::Figures Imitation::TakeFigures() {
  std::vector<double> means = std::exchange(layer_errors_, {});
  for (double& error : means) error /= static_cast<double>(micro_batches_);
  micro_batches_ = 0;
  return {{"layer_errors", std::move(means)}};
}

}  // namespace lattice::distill
