// The arguments of a recurrence as the dispatcher carries them, and the checks that stand before every use.
#ifndef LATTICE_OPS_INPUTS_H_
#define LATTICE_OPS_INPUTS_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "kernels/registry.h"

namespace lattice {

using OptionalTensor = std::optional<at::Tensor>;

struct Inputs {
  at::Tensor q, k, v;
  OptionalTensor gamma, mu, lam, igate, fgate;
  at::Tensor state;
  OptionalTensor cu_seqlens;
};

// Throws c10::Error with the operator's name, the argument, what was expected, what was got and what to do.
// Looks at shapes, types and devices only (symbolic sizes welcome), never at data.
void CheckInputs(const kernels::RuleInfo& rule, const std::string& normalize, const Inputs& in);

// Looks at the data of cu_seqlens: from 0 to T, never falling.
void CheckSequenceStarts(const kernels::RuleInfo& rule, const at::Tensor& cu_seqlens, int64_t T);

// "[scan]" or "[recur]": how messages about this rule begin.
std::string OperatorName(const kernels::RuleInfo& rule);

// The rule of that name; c10::Error naming the known ones otherwise.
const kernels::RuleInfo& RuleNamed(const std::string& name);

}  // namespace lattice

#endif  // LATTICE_OPS_INPUTS_H_
