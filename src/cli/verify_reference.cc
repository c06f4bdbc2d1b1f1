// Evaluates a checkpoint with torch, as the reference of `lattice verify`.
#include "cli/verify_reference.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "model/checkpoint.h"
#include "nn/language_model.h"

namespace lattice::cli {
namespace {

constexpr int64_t kWindow = 512;

at::Tensor Ids(std::span<const int32_t> tokens) {
  at::Tensor ids = at::empty({1, static_cast<int64_t>(tokens.size())}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), ids.mutable_data_ptr<int64_t>());
  return ids;
}

double MeanNats(const nn::LanguageModel& lm, std::span<const int32_t> tokens) {
  nn::States states;
  double sum = 0;
  const int64_t targets = static_cast<int64_t>(tokens.size()) - 1;
  for (int64_t first = 0; first < targets; first += kWindow) {
    const auto count = static_cast<size_t>(std::min(kWindow, targets - first));
    const auto at = static_cast<size_t>(first);
    const at::Tensor hidden = lm.Forward(Ids(tokens.subspan(at, count)), &states);
    sum += lm.TokenLosses(hidden, Ids(tokens.subspan(at + 1, count))).sum(at::kDouble).item<double>();
  }
  return sum / static_cast<double>(targets);
}

std::vector<int32_t> Greedy(const nn::LanguageModel& lm, std::span<const int32_t> prompt, int64_t count) {
  nn::States states;
  std::vector<int32_t> text;
  at::Tensor ids = Ids(prompt);
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor hidden = lm.Forward(ids, &states);
    text.push_back(static_cast<int32_t>(lm.Logits(hidden[0][-1]).argmax().item<int64_t>()));
    ids = Ids({&text.back(), 1});
  }
  return text;
}

}  // namespace

TorchReference MakeReference(const std::filesystem::path& checkpoint, std::span<const int32_t> tokens,
                             const VerifyParts& parts, int threads) {
  if (threads > 0) at::set_num_threads(threads);
  const c10::NoGradGuard no_grad;
  nn::LanguageModel lm(model::ReadModelConfig(checkpoint), 0);
  lm.LoadWeights(checkpoint / model::kWeightsFile);

  TorchReference reference;
  const at::Tensor hidden = lm.Forward(Ids(tokens.first(static_cast<size_t>(parts.compared))));
  const at::Tensor logits = lm.Logits(hidden)[0].to(at::kFloat).contiguous();
  reference.logits.assign(logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel());
  reference.nats = MeanNats(lm, tokens);
  reference.greedy = Greedy(lm, tokens.first(static_cast<size_t>(parts.prompt)), parts.generated);
  return reference;
}

}  // namespace lattice::cli
