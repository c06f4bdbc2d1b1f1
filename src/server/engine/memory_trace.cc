// Collects what each token did to the memory, quantised for the wire.
#include "server/engine/memory_trace.h"

#include <algorithm>
#include <cmath>

namespace lattice::server {

uint8_t WriteByte(double share) {
  constexpr double kLeast = -3, kDecades = 4;  // powers of ten
  if (!(share > 0)) return 0;
  return static_cast<uint8_t>(
      std::lround(255 * std::clamp((std::log10(share) - kLeast) / kDecades, 0.0, 1.0)));
}

double Rounded(double figure) { return std::round(figure * 1000) / 1000; }

MemoryTrace::MemoryTrace(const model::ModelConfig& config)
    : layers_(config.layers), heads_(config.heads), slots_(config.Slots()) {}

void MemoryTrace::Watch(runtime::Feed& feed) {
  const auto heads = static_cast<size_t>(layers_ * heads_);
  tokens_.resize(feed.tokens.size());
  for (std::shared_ptr<TokenMemory>& token : tokens_) {
    token = std::make_shared<TokenMemory>();
    token->write.resize(heads * static_cast<size_t>(slots_));
    token->novelty.resize(heads);
  }
  feed.observer = this;
}

void MemoryTrace::Observe(const runtime::MemoryStep& step, const runtime::StepFigures& figures) {
  TokenMemory& token = *tokens_[static_cast<size_t>(step.token)];
  const auto head = static_cast<size_t>(step.layer * heads_ + step.head);
  uint8_t* write = &token.write[head * static_cast<size_t>(slots_)];
  for (const float change : figures.slot_write) *write++ = WriteByte(change);
  token.novelty[head] = static_cast<float>(figures.novelty.value_or(std::nan("")));
}

std::vector<std::shared_ptr<const TokenMemory>> MemoryTrace::Take() {
  std::vector<std::shared_ptr<const TokenMemory>> out(tokens_.begin(), tokens_.end());
  tokens_.clear();
  return out;
}

}  // namespace lattice::server
