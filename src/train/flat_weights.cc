#include "train/flat_weights.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "dist/collectives.h"

namespace lattice::train {
namespace {

// Elements that one operation gathers over all ranks: c10d copies them through memory of that size.
constexpr int64_t kChunk = int64_t{4} << 20;

}  // namespace

FlatWeights::FlatWeights(const nn::LanguageModel& model, dist::Group& group)
    : model_(model), group_(group), shares_(model.parameters(), group.size()) {
  c10::NoGradGuard no_grad;
  memory_ = at::zeros({shares_.length() * group.size()}, at::kFloat);
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const at::Tensor& value = model.parameters()[i].value;
    at::Tensor place = memory_.narrow(0, shares_.offset(i), value.numel()).view(value.sizes());
    place.copy_(value);
    value.set_data(place);
  }
}

void FlatWeights::Gather() {
  c10::NoGradGuard no_grad;
  const int64_t length = shares_.length();
  const int64_t most = std::max<int64_t>(kChunk / group_.size(), 1);
  dist::Pending before;
  for (int64_t at = 0; at < length; at += most) {
    const int64_t count = std::min(most, length - at);
    std::vector<at::Tensor> all;
    for (int rank = 0; rank < group_.size(); ++rank)
      all.push_back(memory_.narrow(0, rank * length + at, count));
    dist::Pending now = dist::AllGather(group_, all, all[static_cast<size_t>(group_.rank())]);
    before.Wait();
    before = std::move(now);
  }
  before.Wait();
  // Cached bf16 copies of weights go by the tensors' versions.
  for (const nn::Parameter& parameter : model_.parameters())
    parameter.value.unsafeGetTensorImpl()->bump_version();
}

}  // namespace lattice::train
