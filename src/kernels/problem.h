// A problem describes to the kernels what to compute: sizes, inputs, outputs and gradients as raw pointers.
//
// Letters: B batch, T time, H heads, M slots, D head width, N sequences.
// q, k are [B,T,H,M]; v, y [B,T,H,D]; gates [B,T,H], or [B,T,H,M] if they have one value per slot.
// The last dimension is contiguous; the other strides are free. States are contiguous [N,H,state_size].
//
// Ownership: everything belongs to the caller and must outlive the call. Nothing here allocates or throws.
#ifndef LATTICE_KERNELS_PROBLEM_H_
#define LATTICE_KERNELS_PROBLEM_H_

#include <algorithm>
#include <cstdint>

namespace lattice::kernels {

// Tokens between two checkpoints, the states that the forward pass saves for the backward pass; the states in
// between are recomputed. 32 states of a 64 x 64 head in float32 are 512 KiB: half an L2 cache.
inline constexpr int64_t kBlock = 32;

// A tensor [B,T,H,...] by its strides in elements; absent when data is null.
template <typename T>
struct View {
  T* data = nullptr;
  int64_t batch = 0, time = 0, head = 0;

  T* At(int64_t b, int64_t t, int64_t h) const { return data + b * batch + t * time + h * head; }
  explicit operator bool() const { return data != nullptr; }
};

// Tokens [begin, begin + length) of batch row `batch`, with a state of their own.
struct Sequence {
  int64_t batch = 0, begin = 0, length = 0;
  int64_t checkpoint = 0;   // index of its first checkpoint
  int64_t saved_token = 0;  // index of its first token with saved activations
};

// Checkpoints inside a sequence: the states after kBlock, 2 kBlock, ... tokens. The initial state is not one
// of them: the caller has it.
inline int64_t CheckpointsOf(int64_t length) { return length > 0 ? (length - 1) / kBlock : 0; }

// Size of a token's saved activations, in multiples of M and of D. They are what a rule reads from the state
// for that token (dots with the slots, a mixture of them). The forward pass saves them for some tokens; for
// these the backward pass computes all steps of a block without waiting for the states they start from.
struct SavedSize {
  int64_t slots = 0, width = 0;

  template <typename Int>
  Int Of(const Int& M, const Int& D) const {
    return M * slots + D * width;
  }
};

// At most how many tokens of a sequence have saved activations: as many as fit into the memory of 40 states
// per head. Together with the checkpoints and the states that two threads recompute, that is T / 32 + 64
// states per head for four heads or more. None where the activations are not small compared with a state:
// fetching them costs more than recomputing them. Int may be symbolic.
template <typename Int>
Int MaxSavedTokens(const Int& state_size, const Int& saved_size) {
  return saved_size == 0 || state_size < saved_size * 16 ? Int(0) : state_size * 40 / saved_size;
}

// The first token of a sequence that has saved activations; it and all tokens after it have them, in whole
// blocks. `length` where none has, as in a sequence so long that they would cover less than an eighth of it.
inline int64_t FirstSavedToken(int64_t length, int64_t state_size, int64_t saved_size) {
  const int64_t most = MaxSavedTokens(state_size, saved_size), rest = length - most;
  if (length > 8 * most) return length;
  return std::min(length, (std::max<int64_t>(rest, 0) + kBlock - 1) / kBlock * kBlock);
}

// When the Lattice recurrence brings its slots back to their lengths: after every token, at the ends of
// chunks (the chunk forms only), or never.
enum class Normalize { kToken, kChunk, kNone };

// The loss that a step of the Lattice recurrence descends (docs/recurrence.md).
enum class Objective { kDec, kEnc, kSim };

// The most gates a memory has. memory.h describes them.
inline constexpr int kMaxGates = 4;

// Indices of the Lattice memories' gates in Problem::gates.
enum LatticeGate { kGammaGate, kMuGate, kLamGate };

// The part of a problem that both passes share.
template <typename T>
struct Problem {
  int64_t heads = 0, slots = 0, width = 0;
  int64_t state_size = 0;  // elements of one head's state; slots * width unless the rule says otherwise
  const Sequence* sequences = nullptr;
  int64_t count = 0;  // N
  Normalize normalize = Normalize::kToken;

  View<const T> q, k, v;
  View<const T> gates[kMaxGates];  // in the order of the memory's description; absent ones are 1
  const T* state = nullptr;

  // A cell is one head of one sequence: the unit of work. Cells never share data they write.
  int64_t Cells() const { return count * heads; }
};

template <typename T>
struct ForwardProblem : Problem<T> {
  View<T> y;
  T* state_out = nullptr;
  // Saved for the backward pass; both null where none will follow, the activations also where no token has
  // any.
  T* checkpoints = nullptr;        // [sum of CheckpointsOf, H, state_size]
  T* saved_activations = nullptr;  // [tokens that have them, H, SavedSize]
};

template <typename T>
struct BackwardProblem : Problem<T> {
  const T *checkpoints = nullptr, *saved_activations = nullptr;
  View<const T> dy;
  const T* dstate_out = nullptr;  // null: zeros
  View<T> dq, dk, dv;
  View<T> dgates[kMaxGates];  // absent when the gate is
  T* dstate = nullptr;
};

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_PROBLEM_H_
