#include "runtime/memory_rule.h"

#include <string>

namespace lattice::runtime {
namespace {

const kernels::RuleInfo* RuleOf(const model::MixerInfo& mixer) {
  if (mixer.attention) return nullptr;
  return &kernels::FindRule(mixer.objective.empty() ? std::string(mixer.rule)
                                                    : "lattice_" + std::string(mixer.objective));
}

}  // namespace

MemoryRule::MemoryRule(const model::ModelConfig& config)
    : mixer(&model::FindMixer(config.mixer)),
      rule(RuleOf(*mixer)),
      normalize(config.normalize == model::Normalize::kNone ? kernels::Normalize::kNone
                                                            : kernels::Normalize::kToken),
      lam(mixer->objective.empty() ? 0 : static_cast<float>(config.lam)),
      heads(config.heads),
      slots(config.Slots()),
      width(config.HeadDim()) {
  if (rule != nullptr) state_size = rule->StateSize(slots, width);
}

}  // namespace lattice::runtime
