#include "server/memory_trace.h"

#include <algorithm>
#include <cmath>

#include "runtime/memory_view.h"

namespace lattice::server {

double Rounded(double figure) { return std::round(figure * 1000) / 1000; }

MemoryTrace::MemoryTrace(const model::ModelConfig& config)
    : layers_(config.layers), heads_(config.heads), slots_(config.Slots()), width_(config.HeadDim()) {}

void MemoryTrace::Watch(runtime::Feed& feed) {
  tokens_ = static_cast<int64_t>(feed.tokens.size());
  writes_.assign(static_cast<size_t>(tokens_ * layers_ * heads_ * slots_), 0);
  feed.trace = &trace_;
  feed.observer = this;
}

void MemoryTrace::Observe(const runtime::MemoryStep& step) {
  const auto slots = static_cast<size_t>(slots_), width = static_cast<size_t>(width_);
  uint8_t* out =
      &writes_[static_cast<size_t>((step.token * layers_ + step.layer) * heads_ + step.head) * slots];
  for (size_t i = 0; i < slots; ++i) {
    const double change =
        runtime::RelativeChange(step.before.subspan(i * width, width), step.after.subspan(i * width, width));
    out[i] = static_cast<uint8_t>(std::lround(255 * std::min(1.0, change)));
  }
}

std::vector<std::shared_ptr<const TokenMemory>> MemoryTrace::Take() {
  std::vector<std::shared_ptr<const TokenMemory>> out;
  const auto size = static_cast<std::ptrdiff_t>(layers_ * heads_ * slots_);
  for (int64_t t = 0; t < tokens_; ++t) {
    auto memory = std::make_shared<TokenMemory>();
    memory->write.assign(writes_.begin() + t * size, writes_.begin() + (t + 1) * size);
    for (int64_t layer = 0; layer < layers_; ++layer) {
      for (int64_t head = 0; head < heads_; ++head)
        memory->novelty.push_back(trace_.At(t, layer, head).novelty);
    }
    out.push_back(std::move(memory));
  }
  return out;
}

}  // namespace lattice::server
