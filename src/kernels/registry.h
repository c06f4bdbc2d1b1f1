// Every recurrent rule the kernels can compute, by name.
#ifndef LATTICE_KERNELS_REGISTRY_H_
#define LATTICE_KERNELS_REGISTRY_H_

#include <string>
#include <vector>

#include "kernels/kernel_set.h"

namespace lattice::kernels {

// The gates a rule takes, as bits. kGamma, kMu, kInput, kForget: [B,T,H]; kSlotMu: [B,T,H,M].
enum Gate : unsigned { kGamma = 1, kMu = 2, kSlotMuGate = 4, kInput = 8, kForget = 16 };

struct RuleInfo {
  std::string name;
  unsigned gates = 0;           // required
  unsigned optional_gates = 0;  // may be left out
  bool zero_state = true;       // a sequence may start from zeros
  bool vector_state = false;    // beside S [M,D] the state holds n [M] and m, one after the other
  KernelSet kernels;
  KernelSet shrink_kernels;  // with l1 shrinkage (lam); null where a rule has none

  // Elements of a head's state; Int may be symbolic.
  template <typename Int>
  Int StateSize(const Int& slots, const Int& width) const {
    return vector_state ? slots * width + slots + 1 : slots * width;
  }
};

// In the order in which they are listed to users.
const std::vector<RuleInfo>& Rules();

// Adds a rule that the library does not have (docs/adding-a-memory.md). Throws Error when the name is taken
// or a kernel is missing. Call it at the start of the program: other threads must not look at the rules
// meanwhile, and references to rules obtained before do not stay valid.
void RegisterRule(RuleInfo rule);

// The rule of that name. Throws Error that names the known ones.
const RuleInfo& FindRule(const std::string& name);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_REGISTRY_H_
