// The arguments of a recurrence as the dispatcher carries them, and the checks that stand before every use.
#ifndef LATTICE_OPS_INPUTS_H_
#define LATTICE_OPS_INPUTS_H_

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

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

// The values of cu_seqlens, int32 or int64 on any device, read on the host. Throws c10::Error that begins
// with `op` unless they go from 0 to T and never fall, and where there are no values to read (meta and fake
// tensors).
std::vector<int64_t> SequenceStarts(const std::string& op, const at::Tensor& cu_seqlens, int64_t T);

// Whether a tensor has values that can be read here and now: not so for meta tensors, nor under a trace.
bool HasValues(const at::Tensor& x);

// Throws c10::Error where forward-mode differentiation would pass through unnoticed: the recurrences have
// no tangents.
void RequireNoTangents(const char* op, std::initializer_list<at::Tensor> tensors);

// "[scan]" or "[recur]": how messages about this rule begin.
std::string OperatorName(const kernels::RuleInfo& rule);

// The rule of that name; c10::Error naming the known ones otherwise.
const kernels::RuleInfo& RuleNamed(const std::string& name);

}  // namespace lattice

#endif  // LATTICE_OPS_INPUTS_H_
