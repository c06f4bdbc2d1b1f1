// A cell, one head of one sequence: where its tokens, checkpoints and saved activations are, and how they are
// prefetched.
#if defined(LATTICE_KERNELS_ENGINE_CELL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_ENGINE_CELL_INL_H_
#undef LATTICE_KERNELS_ENGINE_CELL_INL_H_
#else
#define LATTICE_KERNELS_ENGINE_CELL_INL_H_
#endif

#include "kernels/engine/prefetch_queue.h"
#include "kernels/engine/update-inl.h"
#include "kernels/engine/workspace-inl.h"
#include "kernels/problem.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T>
struct Cell {
  int64_t sequence, batch, begin, length, head, heads;

  Cell(const Problem<T>& p, int64_t cell)
      : sequence(cell / p.heads),
        batch(p.sequences[sequence].batch),
        begin(p.sequences[sequence].begin),
        length(p.sequences[sequence].length),
        head(cell % p.heads),
        heads(p.heads) {}

  template <typename U>
  U* At(const View<U>& view, int64_t t) const {
    return view.At(batch, begin + t, head);
  }
  int64_t StateOffset(const Problem<T>& p) const { return (sequence * heads + head) * p.state_size; }
  // The checkpoint after `block` blocks of tokens, block >= 1.
  int64_t CheckpointOffset(const Problem<T>& p, int64_t block) const {
    return ((p.sequences[sequence].checkpoint + block - 1) * heads + head) * p.state_size;
  }
};

// Loads the inputs of token t, padded. The workspace has room for two tokens at a time, an even and an odd
// one.
template <class Rule, typename T>
HWY_INLINE Token<T>& LoadToken(const Problem<T>& p, const Cell<T>& c, int64_t t, Workspace<T>& w) {
  Token<T>& x = w.tokens[t % 2];
  const auto& copies = w.copies[t % 2];
  x.q = Padded(c.At(p.q, t), p.slots, copies.q);
  x.k = Padded(c.At(p.k, t), p.slots, copies.k);
  if constexpr (Rule::kExtraColumns == 0) {
    x.v = Padded(c.At(p.v, t), p.width, copies.v);
  } else {
    Copy(c.At(p.v, t), p.width, copies.v);
    for (size_t i = 0; i < Rule::kExtraColumns; ++i) copies.v[p.width + i] = T(1);
    x.v = copies.v;
  }
  for (int i = 0; i < Rule::kGates; ++i) {
    if (i == Rule::kSlotGate) {
      x.slot_gate = Padded(c.At(p.gates[i], t), p.slots, copies.slot_gate);
    } else if (p.gates[i]) {
      x.gates[i] = *c.At(p.gates[i], t);
    }
  }
  return x;
}

// Size of the saved activations of a token, which are |S_i|^2 [kMeasures], <S_i, h> [kDots], w @ S [kReads].
template <class Rule>
inline constexpr SavedSize kSavedSize = {int{Rule::kMeasures} + ((Rule::kStateUse & kDots) ? 1 : 0),
                                         (Rule::kStateUse & kReads) ? 1 : 0};

// Where the saved activations of a cell's tokens are. Tokens before `from` have none.
template <class Rule, typename T>
struct SavedActivations {
  int64_t size, from, first, heads, head;

  SavedActivations(const Problem<T>& p, const Cell<T>& c)
      : size(kSavedSize<Rule>.Of(p.slots, p.width)),
        from(FirstSavedToken(c.length, p.state_size, size)),
        first(p.sequences[c.sequence].saved_token),
        heads(c.heads),
        head(c.head) {}

  // Those of token t in the problem's array `all`, null where there are none.
  template <typename U>
  U* At(U* all, int64_t t) const {
    return all == nullptr || t < from ? nullptr : all + ((first + t - from) * heads + head) * size;
  }
};

// Prefetches the cache lines of n elements, for writing if kWrite.
template <bool kWrite, typename T>
HWY_INLINE void PrefetchLines(const T* x, int64_t n) {
  for (int64_t i = 0; i < n; i += int64_t{64 / sizeof(T)}) __builtin_prefetch(x + i, kWrite);
}

template <typename T>
HWY_INLINE void PrefetchToken(const Problem<T>& p, const Cell<T>& c, int64_t t) {
  if (t >= c.length) return;
  PrefetchLines<false>(c.At(p.k, t), p.slots);
  PrefetchLines<false>(c.At(p.q, t), p.slots);
  PrefetchLines<false>(c.At(p.v, t), p.width);
}

// A state divided by the tokens of a block: the elements that each token prefetches of the next checkpoint.
template <typename T>
HWY_INLINE int64_t ShareOfState(const Problem<T>& p) {
  return (p.state_size + kBlock - 1) / kBlock;
}

// Prefetches, for writing, token t's share of the checkpoint that follows its block. Without this the burst
// of writes costs the forward pass 160 cycles a token (7 %).
template <typename T>
HWY_INLINE void PrefetchCheckpoint(const ForwardProblem<T>& p, const Cell<T>& c, int64_t t) {
  const int64_t block = t / kBlock + 1, share = ShareOfState(p);
  if (p.checkpoints == nullptr || block * kBlock >= c.length) return;
  PrefetchLines<true>(p.checkpoints + c.CheckpointOffset(p, block) + t % kBlock * share, share);
}

// The block of tokens that the backward pass works on next, to be prefetched during the current one. There is
// none where `first` is negative.
template <class Rule, typename T>
class NextBlock {
 public:
  NextBlock(const Problem<T>& p, const Cell<T>& cell, int64_t first)
      : cell_(cell), saved_(p, cell), first_(first) {}

  // Queues what will be read and written for its token i.
  HWY_INLINE void Add(const BackwardProblem<T>& p, int64_t i, PrefetchQueue& prefetch) const {
    const int64_t t = first_ + i;
    if (first_ < 0) return;
    prefetch.Add(cell_.At(p.k, t), p.slots);
    prefetch.Add(cell_.At(p.v, t), p.width);
    prefetch.Add(cell_.At(p.q, t), p.slots);
    if constexpr (Rule::kSlotGate >= 0) prefetch.Add(cell_.At(p.gates[Rule::kSlotGate], t), p.slots);
    if (const T* saved = saved_.At(p.saved_activations, t)) prefetch.Add(saved, saved_.size);
    prefetch.Add(cell_.At(p.dy, t), p.width);
    prefetch.Add(cell_.At(p.dq, t), p.slots);
    if (first_ == 0) return;
    const int64_t share = ShareOfState(p);
    prefetch.Add(p.checkpoints + cell_.CheckpointOffset(p, first_ / kBlock) + i * share, share);
  }

 private:
  const Cell<T>& cell_;
  const SavedActivations<Rule, T> saved_;
  const int64_t first_;
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_ENGINE_CELL_INL_H_
