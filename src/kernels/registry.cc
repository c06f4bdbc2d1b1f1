#include "kernels/registry.h"

#include <utility>

#include "base/error.h"

namespace lattice::kernels {

// Defined by LATTICE_DISPATCH_RULE in rules/*.cc.
KernelSet LatticeDecKernels();
KernelSet LatticeDecShrinkKernels();
KernelSet LatticeEncKernels();
KernelSet LatticeEncShrinkKernels();
KernelSet LatticeSimKernels();
KernelSet LatticeSimShrinkKernels();
KernelSet LinearAttentionKernels();
KernelSet Mamba2Kernels();
KernelSet GlaKernels();
KernelSet DeltaNetKernels();
KernelSet GatedDeltaNetKernels();
KernelSet Rwkv7Kernels();
KernelSet TttKernels();
KernelSet MlstmKernels();

namespace {

std::vector<RuleInfo>& MutableRules() {
  static std::vector<RuleInfo> rules = {
      {"lattice_dec", kGamma, kMu, false, false, LatticeDecKernels(), LatticeDecShrinkKernels()},
      {"lattice_enc", kGamma, kMu, false, false, LatticeEncKernels(), LatticeEncShrinkKernels()},
      {"lattice_sim", kGamma, kMu, false, false, LatticeSimKernels(), LatticeSimShrinkKernels()},
      {"linear_attention", 0, 0, true, false, LinearAttentionKernels(), {}},
      {"mamba2", kMu, 0, true, false, Mamba2Kernels(), {}},
      {"gla", kSlotMuGate, 0, true, false, GlaKernels(), {}},
      {"deltanet", kGamma, 0, true, false, DeltaNetKernels(), {}},
      {"gated_deltanet", kGamma | kMu, 0, true, false, GatedDeltaNetKernels(), {}},
      {"rwkv7", kGamma | kSlotMuGate, 0, true, false, Rwkv7Kernels(), {}},
      {"ttt", kGamma, 0, true, false, TttKernels(), {}},
      {"mlstm", kInput | kForget, 0, true, true, MlstmKernels(), {}},
  };
  return rules;
}

}  // namespace

const std::vector<RuleInfo>& Rules() { return MutableRules(); }

void RegisterRule(RuleInfo rule) {
  for (const RuleInfo& known : Rules()) {
    Check(known.name != rule.name, "[rule] the name '", rule.name, "' is taken; choose another");
  }
  const KernelSet& k = rule.kernels;
  Check(k.forward_f32 && k.forward_f64 && k.backward_f32 && k.backward_f64, "[rule] '", rule.name,
        "' lacks kernels; pass the KernelSet that LATTICE_DISPATCH_RULE makes");
  MutableRules().push_back(std::move(rule));
}

const RuleInfo& FindRule(const std::string& name) {
  std::string known;
  for (const RuleInfo& rule : Rules()) {
    if (rule.name == name) return rule;
    known += (known.empty() ? "" : ", ") + rule.name;
  }
  Fail("[rule] unknown rule '", name, "'; the rules are: ", known);
}

}  // namespace lattice::kernels
