// The description of a memory as data. It says everything that differs between memories outside of their
// kernels; the operators, the blocks of training and of the runtime, checkpoints, the inspection of memories,
// help texts and Python read it. memories.cc lists the library's memories; docs/adding-a-memory.md adds one
// from outside.
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

// What a gate is for. The initial bias of a write gate is model.gamma_bias, of a forget gate model.mu_bias. A
// shrink gate is never required, and a problem that has one is computed by kernels of its own.
enum class GateRole { kWrite, kForget, kShrink, kOther };

// How a block makes a gate from its normalised input u, per token and head:
//   kNone         not from the input: it is an argument of the operator, or (lam) a setting of the model
//   kSigmoid      sigmoid(u W + b)
//   kDecay        exp(-exp(log_decay) softplus(u W + b))
//   kSlotSigmoid  sigmoid(u Wdown Wup + b)^(1/16), one value per slot, through a low-rank projection
//   kLinear       u W + b; the rule itself applies a function to it
enum class GateForm { kNone, kSigmoid, kDecay, kSlotSigmoid, kLinear };

// Rank of the projection of kSlotSigmoid, and the power to which its sigmoid is raised.
inline constexpr int64_t kSlotGateRank = 16;
inline constexpr double kSlotGatePower = 1.0 / 16;

struct GateInfo {
  std::string name = {};
  GateRole role = GateRole::kOther;
  GateForm form = GateForm::kNone;
  bool required = true;   // false: the operator can be called without it, and it is 1
  bool per_slot = false;  // [B,T,H,M] instead of [B,T,H]; at most one gate of a memory
  double bias = 0;        // initial bias of a gate of role kOther
};

// The value of a gate at a token that leaves the state as it is, given a key and a value of zero: nothing is
// written and nothing forgotten. Padding has it.
double IdleValue(const GateInfo& gate);

// The vector h that a step writes, up to its sign; novelty is measured with it.
enum class Target {
  kValue,           // v
  kError,           // k@S - v
  kDirectionError,  // k@Phi - v, Phi being the slots' directions
};

// Whether a sequence may start from a state of zeros. kComputable: the operator computes it, but no model
// may.
enum class ZeroStart { kValid, kComputable, kInvalid };

// A part of a head's state besides the matrix S [M,D], which it follows in memory: one number per slot, or a
// single one.
struct StatePart {
  std::string name = {};
  bool per_slot = false;
};

struct MemoryInfo {
  std::string name = {};
  std::string summary = {};
  std::vector<GateInfo> gates = {};  // at most kMaxGates; Problem::gates has their order
  Target target = Target::kValue;

  // Set for the Lattice family, which the operator scan computes, with its choice of normalisation, shrinkage
  // and chunk methods. All others are computed by recur.
  std::optional<Objective> objective = {};
  std::string recur_name = {};  // the name recur knows it by; empty: `name`
  bool chunk_form = false;      // recur also has it as products of matrices (ops/chunked.h)
  bool attention = false;       // softmax attention: no kernels, no gates, a cache that grows

  ZeroStart zeros = ZeroStart::kValid;
  bool learned_state = true;                // the initial state is a parameter of the model, else zeros
  std::vector<StatePart> extra_state = {};  // parts of the state besides the matrix

  // The block of a language model around the memory.
  bool step_scales_values = false;  // softplus(u W + b) of its kDecay gate also multiplies the values
  bool conv_v = false;              // a third short convolution, on v
  bool skip = false;                // y += skip * v, one number a head

  // Floating-point operations of one token's forward step per element of S: a product of the state with a
  // vector counts 2, a rank-one update 2, a scaling 1.
  int64_t flops_per_cell = 0;

  // Elements of a head's state; Int may be symbolic.
  template <typename Int>
  Int StateSize(const Int& slots, const Int& width) const {
    Int size = slots * width;
    for (const StatePart& part : extra_state) size = size + (part.per_slot ? slots : Int(1));
    return size;
  }

  // The index of the gate with that name, or of the first gate with that role; -1 when there is none.
  int FindGate(GateRole role) const;
  int FindGate(std::string_view gate) const;

  const std::string& RecurName() const { return recur_name.empty() ? name : recur_name; }
};

// A memory with its kernels.
struct Memory : MemoryInfo {
  KernelSet kernels = {};
  KernelSet shrink_kernels = {};  // with a shrink gate; null where there is none

  bool Shrinks() const { return FindGate(GateRole::kShrink) >= 0; }
};

// The names of enumerators in options and files.
std::string_view Name(Objective objective);
std::string_view Name(Normalize normalize);
std::string_view Name(GateRole role);
std::string_view Name(GateForm form);
std::optional<Objective> ObjectiveNamed(std::string_view word);
std::optional<Normalize> NormalizeNamed(std::string_view word);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_MEMORY_H_
