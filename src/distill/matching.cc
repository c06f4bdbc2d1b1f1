#include "distill/matching.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "distill/divergence.h"
#include "nn/layers.h"

namespace lattice::distill {
namespace {

// The streams behind every block, or only the last one.
std::vector<at::Tensor> Streams(const nn::LanguageModel& model, const at::Tensor& inputs, bool all) {
  std::vector<at::Tensor> streams;
  at::Tensor x = model.Embed(inputs);
  for (int64_t i = 0; i < model.config().layers; ++i) {
    x = model.block(i).Forward(x, nullptr);
    if (all || i + 1 == model.config().layers) streams.push_back(x);
  }
  return streams;
}

}  // namespace

double Matching::Backward(const nn::LanguageModel& student, const at::Tensor& inputs, const at::Tensor&,
                          double share) {
  const nn::Bf16Scope scope(student.bf16());  // for the teacher too
  std::vector<at::Tensor> wanted;
  at::Tensor predicted;
  {
    const c10::NoGradGuard no_grad;
    wanted = Streams(*teacher_, inputs, hidden_ > 0);
    predicted = teacher_->Finish(wanted.back()).flatten(0, 1);
  }
  const std::vector<at::Tensor> streams = Streams(student, inputs, hidden_ > 0);
  at::Tensor loss = Divergence(student.Finish(streams.back()).flatten(0, 1), student.Head(), predicted,
                               teacher_->Head(), student.bf16());
  for (size_t i = 0; hidden_ > 0 && i < streams.size(); ++i) {
    const at::Tensor distance = (streams[i] - wanted[i]).square().sum(-1) / wanted[i].square().sum(-1);
    loss = loss + distance.mean() * (hidden_ / static_cast<double>(streams.size()));
  }
  loss = loss * share;
  loss.backward();
  return loss.item<double>();
}

}  // namespace lattice::distill
