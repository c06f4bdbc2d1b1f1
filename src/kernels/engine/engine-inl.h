// The engine: runs any recurrent rule over sequences, forward and backward. The loop over tokens,
// checkpoints, recomputation and the gradient of the update are written here, once for all rules.
//
// A rule is a class template over the element type, derived from RuleBase. It says how a token and the state
// make the step S_new = diag(A) S - B h^T (docs/recurrence.md, "The compact form"), and the adjoint of that.
// docs/adding-a-memory.md shows one in full.
//
// Forward, for every token: read from S what the rule asks for (ReadState), let it make A, B and h
// (MakeStep), then update S and read y = q @ S_new in one pass (Apply).
//
// Backward, for every block of kBlock tokens from the last to the first: recompute its states and steps from
// the checkpoint before it (RecomputeBlock), then run the adjoint of every step from its last token to its
// first (BackwardBlock), carrying G, the gradient of the state.
#if defined(LATTICE_KERNELS_ENGINE_ENGINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_ENGINE_ENGINE_INL_H_
#undef LATTICE_KERNELS_ENGINE_ENGINE_INL_H_
#else
#define LATTICE_KERNELS_ENGINE_ENGINE_INL_H_
#endif

#include <vector>

#include "hwy/cache_control.h"
#include "kernels/engine/cell-inl.h"
#include "kernels/engine/update-inl.h"
#include "kernels/engine/workspace-inl.h"
#include "kernels/problem.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

// Defaults of a rule. An object lives for one pass over one cell, so a rule may have members for the part of
// the state that is not in the matrix. A rule overrides what it needs of the following, and must have
//   MakeStep(x, step)       sets step.A, step.B and step.h
//   Adjoint(x, step, g)     given g.dA, g.dB and g.dh, sets the gradients of the inputs, and g.dz [kReads]
template <typename T>
struct RuleBase {
  static constexpr int kStateUse = 0;         // how A, B and h depend on S: a set of StateUse
  static constexpr bool kMeasures = false;    // needs |S_i|^2: the engine sets step.lengths.norms
  static constexpr int kGates = 0;            // how many gates it reads, the first ones of Token::gates
  static constexpr int kSlotGate = -1;        // which of them is [B,T,H,M] and comes as Token::slot_gate
  static constexpr bool kReadOut = false;     // y is more than q @ S_new: has Read and ReadAdjoint
  static constexpr bool kShrinks = false;     // has Shrink and ShrinkAdjoint, which change the updated state
  static constexpr size_t kExtraColumns = 0;  // further columns of the matrix; for them v is 1

  RuleBase(const Problem<T>& problem, const Dims<T>& dims) : p(problem), d(dims) {}

  // Called first: computes what needs no pass over the state.
  HWY_INLINE void Begin(const Token<T>&, Step<T>&) {}
  // [kReads] The weights w of step.z = w @ S.
  HWY_INLINE const T* Weights(const Token<T>& x, const Step<T>&) const { return x.k; }
  // [kDots] Sets step.h, given step.z. The engine then computes step.dots, <S_i, h>, for MakeStep.
  HWY_INLINE void MakeTarget(const Token<T>&, Step<T>&) {}
  // Called after MakeStep with the state: corrects coefficients for which the numbers that ReadState computed
  // are not accurate enough.
  HWY_INLINE void Refine(const T*, const Token<T>&, Step<T>&) {}

  // Called before Adjoint, with dA and dB.
  // [kDots] Sets P, the gradient of the dots; the engine then leaves P @ S in g.dz for Adjoint.
  HWY_INLINE void AdjointSlots(const Token<T>&, const Step<T>&, StepGrad<T>&) {}
  // [kReads] Called after Adjoint for slots [i, i + kLanes) with <S_i, dz>, the gradient of the weights w_i.
  HWY_INLINE void WeightsAdjoint(size_t, Vec<T>, const Token<T>&, const Step<T>&, StepGrad<T>&) {}

  void Load(const T* state, T* S) { LoadMatrix(d, state, d.width, S); }
  void Save(const T* S, T* state) { StoreMatrix(d, S, d.width, state); }
  // A null pointer stands for a gradient of zeros.
  void LoadGrad(const T* dstate, T* G) { LoadMatrix(d, dstate, dstate == nullptr ? 0 : d.width, G); }
  void SaveGrad(const T* G, T* dstate) { StoreMatrix(d, G, d.width, dstate); }

  const Problem<T>& p;
  const Dims<T>& d;
};

// Measures |S_i|^2 of a state that was loaded; otherwise Update does it.
template <class Rule, typename T>
HWY_INLINE void Measure(const Dims<T>& d, const T* S, const Step<T>& step) {
  if constexpr (Rule::kMeasures) RowNorms(S, d.rows, d.stride, step.lengths.norms);
}

// Computes what the rule reads from the state for a token: z = w @ S [kReads] and <S_i, h> [kDots].
template <class Rule, typename T>
HWY_INLINE void ReadState(Rule& rule, const Dims<T>& d, const T* S, const Token<T>& x, Step<T>& step) {
  rule.Begin(x, step);
  if constexpr (Rule::kStateUse & kReads) {
    ColumnSum(rule.Weights(x, step), S, d.rows, d.stride, step.z);
  }
  rule.MakeTarget(x, step);
  if constexpr (Rule::kStateUse & kDots) RowDots(S, d.rows, d.stride, step.h, step.dots);
}

// Calls copy(array of the step, elements, its place in `saved`) for each of a token's saved activations.
template <class Rule, typename T, typename U, class CopyFn>
HWY_INLINE void ForEachSaved(const Problem<T>& p, const Step<T>& step, U* saved, const CopyFn& copy) {
  const auto next = [&](T* x, int64_t n) LATTICE_INLINE {
    copy(x, n, saved);
    saved += n;
  };
  if constexpr (Rule::kMeasures) next(step.lengths.norms, p.slots);
  if constexpr (Rule::kStateUse & kDots) next(step.dots, p.slots);
  if constexpr (Rule::kStateUse & kReads) next(step.z, p.width);
}

// What ReadState computes, from the saved activations instead of the state.
template <class Rule, typename T>
HWY_INLINE void RestoreReads(Rule& rule, const Problem<T>& p, const T* saved, const Token<T>& x,
                             Step<T>& step) {
  ForEachSaved<Rule>(p, step, saved,
                     [](T* to, int64_t n, const T* from) LATTICE_INLINE { Copy(from, n, to); });
  rule.Begin(x, step);
  rule.MakeTarget(x, step);
}

// Applies a token's step to the state: S_new = diag(A) S - B h^T, in place if S_new is S. kParts says what
// the pass computes besides (UpdateParts).
template <int kParts, class Rule, typename T>
HWY_INLINE void Apply(Rule& rule, const Dims<T>& d, const T* S, const Token<T>& x, Step<T>& step, T* S_new,
                      const UpdateExtras<T>& extras) {
  rule.Refine(S, x, step);
  d.ZeroTail(step.A);
  d.ZeroTail(step.B);
  const T *from = S, *A = step.A, *B = step.B;
  if constexpr (Rule::kShrinks) {
    // The rule updates and shrinks the state itself, and the pass below only rescales it: A = beta, B = 0.
    rule.Shrink(S, x, step, S_new);
    from = S_new;
    A = rule.Rescaling(step);
    B = rule.Zeros(step);
  }
  Update<kParts>(from, d.rows, d.stride, A, B, step.h, S_new, extras);
}

// Forward pass over tokens [first, last) of a cell; S is its state, before and after them.
template <class Rule, typename T>
HWY_INLINE void ForwardBlock(Rule& rule, const ForwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c,
                             int64_t first, int64_t last, T* S, Workspace<T>& w) {
  if (p.checkpoints != nullptr && first > 0) {
    rule.Save(S, p.checkpoints + c.CheckpointOffset(p, first / kBlock));
  }
  const SavedActivations<Rule, T> activations(p, c);
  Step<T>& step = w.steps[0];
  Measure<Rule>(d, S, step);
  PrefetchToken(p, c, first);
  PrefetchToken(p, c, first + 1);
  for (int64_t t = first; t < last; ++t) {
    PrefetchToken(p, c, t + 2);
    if (t + 2 < last) PrefetchLines<true>(c.At(p.y, t + 2), p.width);
    PrefetchCheckpoint(p, c, t);
    const Token<T>& x = LoadToken<Rule>(p, c, t, w);
    T* out = c.At(p.y, t);
    T* y = Rule::kExtraColumns == 0 && IsWhole<T>(p.width) ? out : w.y;
    ReadState(rule, d, S, x, step);
    if (T* saved = activations.At(p.saved_activations, t)) {
      ForEachSaved<Rule>(p, step, saved,
                         [](const T* from, int64_t n, T* to) LATTICE_INLINE { StreamCopy(from, n, to); });
    }
    rule.MakeStep(x, step);
    Apply<kRead | (Rule::kMeasures ? kMeasure : 0)>(rule, d, S, x, step, S,
                                                    {x.q, y, step.lengths.norms, nullptr, nullptr});
    if constexpr (Rule::kReadOut) rule.Read(x, step, y);
    if (y != out) Copy(y, p.width, out);
  }
}

// Whether a cell's state can be updated where it is: it is to be overwritten, and needs no padding.
template <class Rule, typename T>
HWY_INLINE bool IsInPlace(const ForwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c) {
  const auto address = reinterpret_cast<uintptr_t>(p.state_out + c.StateOffset(p));
  return Rule::kExtraColumns == 0 && p.state == p.state_out && d.rows == d.slots && d.stride == d.width &&
         address % (kLanes<T> * sizeof(T)) == 0;
}

// Forward pass over the cells of one sequence, a block of tokens at a time for each cell. The heads of a
// token lie side by side in memory, so running one head through the whole sequence before the next would walk
// all pages of q, k, v and y once per head (30 % slower at H = 12).
template <class Rule, typename T>
void ForwardGroup(const ForwardProblem<T>& p, const Dims<T>& d, const std::vector<Cell<T>>& cells,
                  Workspace<T>& w) {
  const int64_t length = cells[0].length;
  std::vector<Rule> rules;
  for (size_t i = 0; i < cells.size(); ++i) rules.emplace_back(p, d);
  // In a sequence of one block a cell runs to its end before the next one starts, so its state stays in the
  // L1 cache.
  const size_t together = length <= kBlock ? 1 : cells.size();
  for (size_t begin = 0; begin < cells.size(); begin += together) {
    const size_t end = begin + together;
    const bool in_place = together == 1 && IsInPlace<Rule>(p, d, cells[begin]);
    const auto state = [&](size_t i) {
      return in_place ? p.state_out + cells[i].StateOffset(p) : w.CellMatrix(i - begin);
    };
    for (size_t i = begin; i < end && !in_place; ++i)
      rules[i].Load(p.state + cells[i].StateOffset(p), state(i));
    for (int64_t first = 0; first < length; first += kBlock) {
      const int64_t last = HWY_MIN(length, first + kBlock);
      for (size_t i = begin; i < end; ++i) ForwardBlock(rules[i], p, d, cells[i], first, last, state(i), w);
    }
    for (size_t i = begin; i < end && !in_place; ++i)
      rules[i].Save(state(i), p.state_out + cells[i].StateOffset(p));
  }
}

// The gradient of q @ S_new at token t, padded.
template <class Rule, typename T>
HWY_INLINE void LoadOutputGrad(Rule& rule, const BackwardProblem<T>& p, const Cell<T>& c, int64_t t,
                               Step<T>& step, T* dy) {
  Copy(c.At(p.dy, t), p.width, dy);
  if constexpr (Rule::kReadOut) rule.ReadAdjoint(step, dy);
}

// Recomputes S_new of the block's token i from its step, and with it dq_i = <S_new,i, dy>.
template <class Rule, typename T>
HWY_INLINE void RecomputeToken(Rule& rule, const BackwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c,
                               int64_t t, const Token<T>& x, size_t i, Workspace<T>& w) {
  Step<T>& step = w.steps[i];
  T *S_new = w.State(i + 1), *out = c.At(p.dq, t);
  T* dq = IsWhole<T>(p.slots) ? out : w.grad.dq;
  if constexpr (Rule::kReadOut) {
    Apply<kRead>(rule, d, w.State(i), x, step, S_new, {x.q, w.y, nullptr, nullptr, nullptr});
    rule.Read(x, step, w.y);
    LoadOutputGrad(rule, p, c, t, step, w.dy);
    RowDots(S_new, d.rows, d.stride, w.dy, dq);
  } else {
    const T* dy = Padded(c.At(p.dy, t), p.width, w.dy);
    Apply<kQueryGrad>(rule, d, w.State(i), x, step, S_new, {nullptr, nullptr, nullptr, dy, dq});
  }
  if (dq != out) Copy(dq, p.slots, out);
}

// Recomputes the states and steps of tokens [first, last) from the checkpoint at `first`, and computes dq.
// Where the tokens have saved activations, all steps are made before the first state: they depend neither on
// the states nor on each other, so the CPU overlaps them.
template <class Rule, typename T>
HWY_INLINE void RecomputeBlock(Rule& rule, const BackwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c,
                               int64_t first, int64_t last, Workspace<T>& w) {
  const T* checkpoint =
      first == 0 ? p.state + c.StateOffset(p) : p.checkpoints + c.CheckpointOffset(p, first / kBlock);
  rule.Load(checkpoint, w.State(0));
  const SavedActivations<Rule, T> activations(p, c);
  const bool saved = activations.size == 0 || activations.At(p.saved_activations, first) != nullptr;
  for (int64_t t = first; saved && t < last; ++t) {
    const Token<T>& x = LoadToken<Rule>(p, c, t, w);
    RestoreReads(rule, p, activations.At(p.saved_activations, t), x, w.steps[t - first]);
    rule.MakeStep(x, w.steps[t - first]);
  }
  for (int64_t t = first; t < last; ++t) {
    const size_t i = t - first;
    const Token<T>& x = LoadToken<Rule>(p, c, t, w);
    if (!saved) {
      Measure<Rule>(d, w.State(i), w.steps[i]);
      ReadState(rule, d, w.State(i), x, w.steps[i]);
      rule.MakeStep(x, w.steps[i]);
    }
    RecomputeToken(rule, p, d, c, t, x, i, w);
  }
}

template <class Rule, typename T>
HWY_INLINE void StoreTokenGrad(const BackwardProblem<T>& p, const Cell<T>& c, int64_t t,
                               const StepGrad<T>& g) {
  Copy(g.dk, p.slots, c.At(p.dk, t));
  Copy(g.dv, p.width, c.At(p.dv, t));
  for (int i = 0; i < Rule::kGates; ++i) {
    if (i == Rule::kSlotGate) {
      Copy(g.dslot_gate, p.slots, c.At(p.dgates[i], t));
    } else if (p.dgates[i]) {
      *c.At(p.dgates[i], t) = g.dgates[i];
    }
  }
}

// The adjoint of one step: from G, the gradient of S_new, computes the gradients of the token's inputs, and
// the terms P, dz and E from which PropagateStateGrad makes the gradient of S.
template <class Rule, typename T>
HWY_INLINE void TokenAdjoint(Rule& rule, const Dims<T>& d, const T* S, [[maybe_unused]] const T* S_new,
                             const Token<T>& x, Step<T>& step, T* G, StepGrad<T>& g) {
  for (int i = 0; i < Rule::kGates; ++i) g.dgates[i] = T(0);
  if constexpr (Rule::kShrinks) rule.ShrinkAdjoint(S_new, x, step, G, g);
  CoefficientGrads(S, d.rows, d.stride, step.B, step.h, G, g.dA, g.dB, g.dh);
  rule.AdjointSlots(x, step, g);
  if constexpr (Rule::kStateUse & kDots) {
    d.ZeroTail(g.P);
    ColumnSum(g.P, S, d.rows, d.stride, g.dz);
  }
  rule.Adjoint(x, step, g);
  if constexpr (Rule::kStateUse & kReads) {
    RowDots(S, d.rows, d.stride, g.dz, g.dA);  // dA is no longer needed and serves as scratch
    for (size_t i = 0; i < d.rows; i += kLanes<T>) rule.WeightsAdjoint(i, Load(g.dA + i), x, step, g);
  }
  if constexpr (Rule::kStateUse & kScales) d.ZeroTail(g.E);
}

// Backward pass over tokens [first, last) of a cell. G is the gradient of the state after the last token on
// entry, before the first token on return. While token t is worked on, G includes the part q dy^T that y_t
// contributes; the pass that makes the gradient of the state before t adds that part for token t - 1.
template <class Rule, typename T>
HWY_INLINE void BackwardBlock(Rule& rule, const BackwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c,
                              int64_t first, int64_t last, const NextBlock<Rule, T>& next, T* G,
                              Workspace<T>& w) {
  RecomputeBlock(rule, p, d, c, first, last, w);
  StepGrad<T>& g = w.grad;
  LoadOutputGrad(rule, p, c, last - 1, w.steps[last - 1 - first], w.dy);
  const T* q = LoadToken<Rule>(p, c, last - 1, w).q;
  PrefetchQueue none;
  const StateGradTerms<T> read = {w.ones, nullptr, nullptr, nullptr, nullptr, nullptr, q, w.dy, &none};
  PropagateStateGrad<kQuery>(w.State(last - first), d.rows, d.stride, read, G);
  for (int64_t t = last - 1; t >= first; --t) {
    const Token<T>& x = w.tokens[t % 2];
    const T* S = w.State(t - first);
    Step<T>& step = w.steps[t - first];
    TokenAdjoint(rule, d, S, w.State(t - first + 1), x, step, G, g);
    StoreTokenGrad<Rule>(p, c, t, g);
    PrefetchQueue prefetch;
    if (t - 2 >= first) {
      prefetch.Add(c.At(p.dk, t - 2), p.slots);
      prefetch.Add(c.At(p.dv, t - 2), p.width);
    }
    next.Add(p, last - 1 - t, prefetch);
    StateGradTerms<T> terms = {step.A,  g.P,  step.h,   rule.Weights(x, step), g.dz, g.E,
                               nullptr, w.dy, &prefetch};
    if (t == first) {
      PropagateStateGrad<Rule::kStateUse>(S, d.rows, d.stride, terms, G);
    } else {
      LoadOutputGrad(rule, p, c, t - 1, w.steps[t - 1 - first], w.dy);
      terms.q = LoadToken<Rule>(p, c, t - 1, w).q;
      PropagateStateGrad<Rule::kStateUse | kQuery>(S, d.rows, d.stride, terms, G);
    }
  }
}

// Backward pass over the cells of one sequence, block by block like ForwardGroup.
template <class Rule, typename T>
void BackwardGroup(const BackwardProblem<T>& p, const Dims<T>& d, const std::vector<Cell<T>>& cells,
                   Workspace<T>& w) {
  std::vector<Rule> rules;
  for (size_t i = 0; i < cells.size(); ++i) {
    rules.emplace_back(p, d);
    rules[i].LoadGrad(p.dstate_out == nullptr ? nullptr : p.dstate_out + cells[i].StateOffset(p),
                      w.CellMatrix(i));
  }
  const int64_t length = cells[0].length;
  for (int64_t block = length > 0 ? CheckpointsOf(length) : -1; block >= 0; --block) {
    const int64_t first = block * kBlock, last = HWY_MIN(length, first + kBlock);
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool more = i + 1 < cells.size();
      const NextBlock<Rule, T> next(p, cells[more ? i + 1 : 0], more ? first : first - kBlock);
      BackwardBlock(rules[i], p, d, cells[i], first, last, next, w.CellMatrix(i), w);
    }
  }
  for (size_t i = 0; i < cells.size(); ++i)
    rules[i].SaveGrad(w.CellMatrix(i), p.dstate + cells[i].StateOffset(p));
}

// How many cells go through a sequence together: their matrices should stay in a part of the L2 cache.
template <typename T>
HWY_INLINE int64_t GroupSize(const Dims<T>& d) {
  constexpr size_t kBytes = 256 * 1024;
  return HWY_MAX(int64_t{1}, static_cast<int64_t>(kBytes / (d.Matrix() * sizeof(T))));
}

// Calls run(group, workspace) for cells [first, last) of the problem, in groups of cells of one sequence.
template <typename T, class Run>
HWY_INLINE void OverGroups(const Problem<T>& p, const Dims<T>& d, size_t depth, int64_t first, int64_t last,
                           const Run& run) {
  const int64_t size = GroupSize(d);
  Workspace<T> w(d, depth, HWY_MIN(size, last - first));
  std::vector<Cell<T>> group;
  for (int64_t cell = first; cell < last; ++cell) {
    group.emplace_back(p, cell);
    const bool same = cell + 1 < last && (cell + 1) / p.heads == cell / p.heads;
    if (same && static_cast<int64_t>(group.size()) < size) continue;
    run(group, w);
    group.clear();
  }
}

template <class Rule, typename T>
void ForwardCells(const ForwardProblem<T>& p, int64_t first, int64_t last) {
  const Dims<T> d(p.slots, p.width + Rule::kExtraColumns);
  OverGroups(p, d, 1, first, last, [&](const std::vector<Cell<T>>& cells, Workspace<T>& w) HWY_ATTR {
    ForwardGroup<Rule>(p, d, cells, w);
  });
  hwy::FlushStream();  // activations are saved by streaming stores, and another thread may read them
}

template <class Rule, typename T>
void BackwardCells(const BackwardProblem<T>& p, int64_t first, int64_t last) {
  const Dims<T> d(p.slots, p.width + Rule::kExtraColumns);
  OverGroups(p, d, kBlock, first, last, [&](const std::vector<Cell<T>>& cells, Workspace<T>& w) HWY_ATTR {
    BackwardGroup<Rule>(p, d, cells, w);
  });
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_ENGINE_ENGINE_INL_H_
