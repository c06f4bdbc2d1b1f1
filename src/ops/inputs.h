// The arguments of a recurrence as the dispatcher carries them, and the checks that stand before every use.
#ifndef LATTICE_OPS_INPUTS_H_
#define LATTICE_OPS_INPUTS_H_

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/memory.h"

namespace lattice {

using OptionalTensor = std::optional<at::Tensor>;

// An undefined tensor as an absent one.
inline OptionalTensor IfDefined(const at::Tensor& x) {
  return x.defined() ? OptionalTensor(x) : std::nullopt;
}

// Gates in the order of a memory's description; those that are left out have no value.
using GateList = c10::List<std::optional<at::Tensor>>;

struct Inputs {
  at::Tensor q, k, v;
  std::vector<OptionalTensor> gates;
  at::Tensor state;
  OptionalTensor cu_seqlens;

  GateList GatesAsList() const;
  // All tensors that have a derivative, absent gates undefined: q, k, v, state, then the gates.
  std::vector<at::Tensor> Differentiable() const;
  // Everything in the type of the state, cu_seqlens in int64.
  Inputs Widened() const;
  // What the kernels of the device take: those of GPUs read bfloat16 themselves, to others it is widened.
  Inputs ForDevice() const;
};

// The gates of a list, which has at most as many entries as the memory has gates; the rest has no value.
std::vector<OptionalTensor> GatesOf(const kernels::Memory& memory, const GateList& gates);

// The gates of a memory from those that an operator knows by name; c10::Error for one that the memory does
// not take.
std::vector<OptionalTensor> GatesByName(const kernels::Memory& memory,
                                        std::initializer_list<std::pair<const char*, OptionalTensor>> named);

// The checks of a call, each made once. They throw c10::Error with the operator's name, the argument, what
// was expected, what was got and what to do. Types and devices: before anything is converted.
void CheckTypes(const kernels::Memory& memory, const Inputs& in);
// Shapes (symbolic sizes welcome) and which gates there are: where memory is about to be read, or would be.
void CheckShapes(const kernels::Memory& memory, const Inputs& in);
// The one check that looks at data: that no head starts from zeros where the memory has no such start (what
// shrinkage has emptied may go on). For CPU tensors; reads a head as far as its first number that is not 0.
void CheckStart(const kernels::Memory& memory, const Inputs& in);

// The values of cu_seqlens, int32 or int64 on any device, read on the host. Throws c10::Error that begins
// with `op` unless they go from 0 to T and never fall, and where there are no values to read (meta and fake
// tensors).
std::vector<int64_t> SequenceStarts(const std::string& op, const at::Tensor& cu_seqlens, int64_t T);

// The same checks, where there are values, without handing them out. On a GPU the host waits for them, therefore a
// tensor that has just been checked is not read again: the layers of a model share one.
void CheckSequenceStarts(const std::string& op, const at::Tensor& cu_seqlens, const c10::SymInt& T);

// Whether a tensor has values that can be read here and now: not so for meta tensors, nor under a trace.
bool HasValues(const at::Tensor& x);

// Whether the CPU kernels compute tensors like this one, or their shapes are asked for (meta).
inline bool HasCpuKernels(const at::Tensor& x) { return x.device().is_cpu() || x.is_meta(); }

// Throws c10::Error where forward-mode differentiation would pass through unnoticed: the recurrences have
// no tangents.
void RequireNoTangents(const std::string& op, at::TensorList tensors);

// "[scan]" or "[recur]": how messages about this memory begin.
std::string OperatorName(const kernels::Memory& memory);

// "deltanet takes gamma [B,T,H]", for messages.
std::string GatesText(const kernels::Memory& memory);

// The memory that recur knows by that name, which has kernels; c10::Error naming the known ones otherwise.
const kernels::Memory& MemoryNamed(const std::string& name);

}  // namespace lattice

#endif  // LATTICE_OPS_INPUTS_H_
