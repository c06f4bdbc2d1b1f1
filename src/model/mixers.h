// What each sequence memory is made of, without torch: the one list of mixers.
//
// With u the normalised input of a block, per token and head (MATH: docs/recurrence.md has the update rules):
//   gamma = sigmoid(u Wgamma + b)                                     write gate
//   mu    = sigmoid(u Wmu + b)                       kSigmoid         forget gate per head
//   mu    = exp(-exp(log_decay) softplus(u Wmu + b)) kDecay           mamba2 also writes softplus(...) * v
//   mu    = sigmoid(u Wdown Wup + b)^(1/16)          kSlots           forget gate per slot, low rank
//   igate, fgate = u W + b                                            pre-activations of mlstm
#ifndef LATTICE_MODEL_MIXERS_H_
#define LATTICE_MODEL_MIXERS_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace lattice::model {

enum class ForgetGate { kNone, kSigmoid, kDecay, kSlots };

// Rank of the projection behind a forget gate per slot, and the power its sigmoid is taken to.
constexpr int64_t kSlotGateRank = 16;
constexpr double kSlotGatePower = 1.0 / 16;

struct MixerInfo {
  std::string_view name;
  std::string_view summary;
  // "dec", "enc" or "sim" for the lattice mixers (the operator scan); empty for the others.
  std::string_view objective = {};
  // The rule of the operator recur for the others; empty for the lattice mixers.
  std::string_view rule = {};
  bool write_gate = false;                     // gamma
  ForgetGate forget_gate = ForgetGate::kNone;  // mu
  bool exponential_gates = false;              // igate and fgate
  bool conv_v = false;                         // a third short convolution, on v
  bool skip = false;                           // y += skip * v, one number per head
  bool learned_state = false;                  // S0 is a parameter; else the state starts at zero
  bool needs_state = false;                    // a zero state is invalid
  bool attention = false;  // the transformer's block: no convolutions, no gate, a cache that grows
  // Arithmetic of one token per cell of the M x D state, forward: multiplications and additions.
  int64_t flops_per_cell = 0;
};

std::span<const MixerInfo> Mixers();
std::span<const std::string_view> MixerNames();

// Throws Error with the nearest name when there is no such mixer.
const MixerInfo& FindMixer(std::string_view name);

}  // namespace lattice::model

#endif  // LATTICE_MODEL_MIXERS_H_
