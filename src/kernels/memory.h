// What a memory is, as data. Everything that differs between memories outside of their kernels is said here:
// the operators, the blocks of training and of the runtime, checkpoints, the microscope, help texts and
// Python read it. memories.cc lists those of the library; docs/adding-a-memory.md adds one from outside.
//
// With u the normalised input of a block, a gate is made per token and head (docs/recurrence.md has the
// rules):
//   kSigmoid      sigmoid(u W + b)
//   kDecay        exp(-exp(log_decay) softplus(u W + b))
//   kSlotSigmoid  sigmoid(u Wdown Wup + b)^(1/16), one value a slot, through a projection of low rank
//   kLinear       u W + b: the rule has its own function for it
//   kNone         not made from the input: an argument of the operator, or (lam) a setting of the model
#ifndef LATTICE_KERNELS_MEMORY_H_
#define LATTICE_KERNELS_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel_set.h"
#include "kernels/problem.h"

namespace lattice::kernels {

// What a gate does. The initial bias of a write gate is model.gamma_bias, of a forget gate model.mu_bias. A
// shrink gate is never required, and a problem that has one is computed by kernels of its own.
enum class GateRole { kWrite, kForget, kShrink, kOther };

enum class GateForm { kNone, kSigmoid, kDecay, kSlotSigmoid, kLinear };

// Rank of the projection behind kSlotSigmoid, and the power its sigmoid is taken to.
inline constexpr int64_t kSlotGateRank = 16;
inline constexpr double kSlotGatePower = 1.0 / 16;

struct GateInfo {
  std::string name = {};
  GateRole role = GateRole::kOther;
  GateForm form = GateForm::kNone;
  bool required = true;   // else the operator can do without it, and it is 1
  bool per_slot = false;  // [B,T,H,M] instead of [B,T,H]; one gate of a memory at most
  double bias = 0;        // initial bias of a gate of role kOther
};

// What a step writes towards, up to its sign: what novelty is measured by.
enum class Target {
  kValue,           // v
  kError,           // k@S - v
  kDirectionError,  // k@Phi - v, Phi being the slots' directions
};

// Whether a sequence may start from zeros: kComputable means that the operator can, but a model must not.
enum class ZeroStart { kValid, kComputable, kInvalid };

// Numbers of a head's state beside S [M,D], which follow it in memory: one a slot, or a single one.
struct StatePart {
  std::string name = {};
  bool per_slot = false;
};

struct MemoryInfo {
  std::string name = {};
  std::string summary = {};
  std::vector<GateInfo> gates = {};  // at most kMaxGates; Problem::gates has their order
  Target target = Target::kValue;

  // The Lattice family: computed by the operator scan, with its choice of normalisation, shrinkage and chunk
  // methods. All others are computed by recur.
  std::optional<Objective> objective = {};
  std::string recur_name = {};  // the name recur knows it by; empty: `name`
  bool chunk_form = false;      // recur also has it as products of matrices (ops/chunked.h)
  bool attention = false;       // softmax attention: no kernels, no gates, a cache that grows

  ZeroStart zeros = ZeroStart::kValid;
  bool learned_state = true;  // S0 is a parameter of a model; else it starts from zeros
  std::vector<StatePart> beside = {};

  // The block around it.
  bool step_scales_values = false;  // softplus(u W + b) of its kDecay gate also multiplies the values
  bool conv_v = false;              // a third short convolution, on v
  bool skip = false;                // y += skip * v, one number a head

  // Arithmetic of one token per element of S, forward: a product of the state with a vector counts 2, a
  // rank-one update 2, a scaling 1.
  int64_t flops_per_cell = 0;

  // Elements of a head's state; Int may be symbolic.
  template <typename Int>
  Int StateSize(const Int& slots, const Int& width) const {
    Int size = slots * width;
    for (const StatePart& part : beside) size = size + (part.per_slot ? slots : Int(1));
    return size;
  }

  // The place of a gate among the gates, -1 when there is none; of a role the first.
  int FindGate(GateRole role) const;
  int FindGate(std::string_view gate) const;

  const std::string& RecurName() const { return recur_name.empty() ? name : recur_name; }
};

// A memory that can be computed.
struct Memory : MemoryInfo {
  KernelSet kernels = {};
  KernelSet shrink_kernels = {};  // with a shrink gate; null where there is none

  bool Shrinks() const { return FindGate(GateRole::kShrink) >= 0; }
};

// The words that options are spelled with.
std::string_view Name(Objective objective);
std::string_view Name(Normalize normalize);
std::string_view Name(GateRole role);
std::optional<Objective> ObjectiveNamed(std::string_view word);
std::optional<Normalize> NormalizeNamed(std::string_view word);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_MEMORY_H_
