// The loop that runs any recurrent rule over a sequence, forward and backward: written once, here.
//
// A rule is a class template over the element type, derived from RuleBase, that says how a token and the
// state become a step S_new = diag(A) S - B h^T, and the adjoint of that. docs/adding-a-memory.md shows one
// in full.
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

// Defaults of a rule. One object lives for one pass over one cell, so a rule may carry what is not in the
// matrix. Besides what stands here, a rule has
//   MakeStep(x, step)       sets step.A, step.B and step.h
//   Adjoint(x, step, g)     from g.dA, g.dB, g.dh to the gradients of the inputs and to g.dz
template <typename T>
struct RuleBase {
  static constexpr int kPush = 0;             // PushParts: how S enters A, B and h
  static constexpr bool kMeasures = false;    // wants the lengths of the slots
  static constexpr int kGates = 0;            // how many gates it reads: Token::gates has so many
  static constexpr int kSlotGate = -1;        // which of them is [B,T,H,M]: Token::slot_gate
  static constexpr bool kReadOut = false;     // y is more than q @ S_new: has Read and ReadAdjoint
  static constexpr bool kShrinks = false;     // has Shrink and ShrinkAdjoint
  static constexpr size_t kExtraColumns = 0;  // columns of the matrix beside the values, driven by v = 1

  RuleBase(const Problem<T>& problem, const Dims<T>& dims) : p(problem), d(dims) {}

  // First of all: what needs no pass over the state.
  HWY_INLINE void Begin(const Token<T>&, Step<T>&) {}
  // kReads: the weights w of step.z = w @ S.
  HWY_INLINE const T* Weights(const Token<T>& x, const Step<T>&) const { return x.k; }
  // kDots: step.h of the dots <S_i, h>, which MakeStep then finds in step.dots.
  HWY_INLINE void MakeTarget(const Token<T>&, Step<T>&) {}
  // After MakeStep, with the state: what could not be told from the numbers read from it.
  HWY_INLINE void Refine(const T*, const Token<T>&, Step<T>&) {}

  // Before Adjoint, with dA and dB. kDots: sets P, and Adjoint finds P @ S in g.dz.
  HWY_INLINE void AdjointSlots(const Token<T>&, const Step<T>&, StepGrad<T>&) {}
  // After Adjoint, a vector of slots at a time, with the dots <S_i, dz> [kReads].
  HWY_INLINE void ReadSlots(size_t, Vec<T>, const Token<T>&, const Step<T>&, StepGrad<T>&) {}

  void Load(const T* state, T* S) { LoadMatrix(d, state, d.width, S); }
  void Save(const T* S, T* state) { StoreMatrix(d, S, d.width, state); }
  // A null gradient is zero.
  void LoadGrad(const T* dstate, T* G) { LoadMatrix(d, dstate, dstate == nullptr ? 0 : d.width, G); }
  void SaveGrad(const T* G, T* dstate) { StoreMatrix(d, G, d.width, dstate); }

  const Problem<T>& p;
  const Dims<T>& d;
};

// The norms of a state that no Update measured.
template <class Rule, typename T>
HWY_INLINE void Measure(const Dims<T>& d, const T* S, const Step<T>& step) {
  if constexpr (Rule::kMeasures) RowNorms(S, d.rows, d.stride, step.lengths.norms);
}

// What the step of a token reads from the state.
template <class Rule, typename T>
HWY_INLINE void ReadState(Rule& rule, const Dims<T>& d, const T* S, const Token<T>& x, Step<T>& step) {
  rule.Begin(x, step);
  if constexpr (Rule::kPush & kReads) {
    ColumnSum(rule.Weights(x, step), S, d.rows, d.stride, step.z);
  }
  rule.MakeTarget(x, step);
  if constexpr (Rule::kPush & kDots) RowDots(S, d.rows, d.stride, step.h, step.dots);
}

// move(numbers of the step, how many, their place in the notes) for all that ReadState reads.
template <class Rule, typename T, typename U, class Move>
HWY_INLINE void OverNotes(const Problem<T>& p, const Step<T>& step, U* note, const Move& move) {
  const auto next = [&](T* x, int64_t n) LATTICE_INLINE {
    move(x, n, note);
    note += n;
  };
  if constexpr (Rule::kMeasures) next(step.lengths.norms, p.slots);
  if constexpr (Rule::kPush & kDots) next(step.dots, p.slots);
  if constexpr (Rule::kPush & kReads) next(step.z, p.width);
}

// ReadState again, without the state.
template <class Rule, typename T>
HWY_INLINE void Recall(Rule& rule, const Problem<T>& p, const T* note, const Token<T>& x, Step<T>& step) {
  OverNotes<Rule>(p, step, note, [](T* to, int64_t n, const T* from) LATTICE_INLINE { Copy(from, n, to); });
  rule.Begin(x, step);
  rule.MakeTarget(x, step);
}

// S -> S_new, which may be the same memory, by a step that the rule has made. kParts says what Update does
// besides.
template <int kParts, class Rule, typename T>
HWY_INLINE void Apply(Rule& rule, const Dims<T>& d, const T* S, const Token<T>& x, Step<T>& step, T* S_new,
                      const UpdateExtras<T>& extras) {
  rule.Refine(S, x, step);
  d.ZeroTail(step.A);
  d.ZeroTail(step.B);
  const T *from = S, *A = step.A, *B = step.B;
  if constexpr (Rule::kShrinks) {
    rule.Shrink(S, x, step, S_new);
    from = S_new;
    A = rule.Rescaling(step);
    B = rule.Zeros(step);
  }
  Update<kParts>(from, d.rows, d.stride, A, B, step.h, S_new, extras);
}

// Tokens [first, last) of a cell whose state is S.
template <class Rule, typename T>
HWY_INLINE void ForwardBlock(Rule& rule, const ForwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c,
                             int64_t first, int64_t last, T* S, Workspace<T>& w) {
  if (p.checkpoints != nullptr && first > 0) {
    rule.Save(S, p.checkpoints + c.CheckpointOffset(p, first / kBlock));
  }
  const Notes<Rule, T> notes(p, c);
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
    if (T* note = notes.At(p.notes, t)) {
      OverNotes<Rule>(p, step, note,
                      [](const T* from, int64_t n, T* to) LATTICE_INLINE { StreamCopy(from, n, to); });
    }
    rule.MakeStep(x, step);
    Apply<kRead | (Rule::kMeasures ? kMeasure : 0)>(rule, d, S, x, step, S,
                                                    {x.q, y, step.lengths.norms, nullptr, nullptr});
    if constexpr (Rule::kReadOut) rule.Read(x, step, y);
    if (y != out) Copy(y, p.width, out);
  }
}

// Whether the state of a cell is to be overwritten and lies in memory as the passes want it.
template <class Rule, typename T>
HWY_INLINE bool IsInPlace(const ForwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c) {
  const auto address = reinterpret_cast<uintptr_t>(p.state_out + c.StateOffset(p));
  return Rule::kExtraColumns == 0 && p.state == p.state_out && d.rows == d.slots && d.stride == d.width &&
         address % (kLanes<T> * sizeof(T)) == 0;
}

// Cells of one sequence, block by block: the heads of a token lie side by side, so taking one head through
// the whole sequence before the next would walk all pages of q, k, v and y once a head (30 % slower at H =
// 12).
template <class Rule, typename T>
void ForwardGroup(const ForwardProblem<T>& p, const Dims<T>& d, const std::vector<Cell<T>>& cells,
                  Workspace<T>& w) {
  const int64_t length = cells[0].length;
  std::vector<Rule> rules;
  for (size_t i = 0; i < cells.size(); ++i) rules.emplace_back(p, d);
  // Where one block is all, a state stays in the L1 cache from its first use to its last.
  const size_t together = length <= kBlock ? 1 : cells.size();
  for (size_t begin = 0; begin < cells.size(); begin += together) {
    const size_t end = begin + together;
    const bool in_place = together == 1 && IsInPlace<Rule>(p, d, cells[begin]);
    const auto state = [&](size_t i) {
      return in_place ? p.state_out + cells[i].StateOffset(p) : w.Kept(i - begin);
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

template <class Rule, typename T>
HWY_INLINE void LoadOutputGrad(Rule& rule, const BackwardProblem<T>& p, const Cell<T>& c, int64_t t,
                               Step<T>& step, T* dy) {
  Copy(c.At(p.dy, t), p.width, dy);
  if constexpr (Rule::kReadOut) rule.ReadAdjoint(step, dy);
}

// The new state of a token whose step is made, and dq_i = <S_new,i, dy>.
template <class Rule, typename T>
HWY_INLINE void ReplayToken(Rule& rule, const BackwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c,
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

// The states and steps of tokens [first, last) from the state kept at `first`, and dq. Where the tokens are
// noted, no step waits for a state; made all before the first state, they do not wait for each other either.
template <class Rule, typename T>
HWY_INLINE void Replay(Rule& rule, const BackwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c,
                       int64_t first, int64_t last, Workspace<T>& w) {
  const T* kept =
      first == 0 ? p.state + c.StateOffset(p) : p.checkpoints + c.CheckpointOffset(p, first / kBlock);
  rule.Load(kept, w.State(0));
  const Notes<Rule, T> notes(p, c);
  const bool noted = notes.size == 0 || notes.At(p.notes, first) != nullptr;
  for (int64_t t = first; noted && t < last; ++t) {
    const Token<T>& x = LoadToken<Rule>(p, c, t, w);
    Recall(rule, p, notes.At(p.notes, t), x, w.steps[t - first]);
    rule.MakeStep(x, w.steps[t - first]);
  }
  for (int64_t t = first; t < last; ++t) {
    const size_t i = t - first;
    const Token<T>& x = LoadToken<Rule>(p, c, t, w);
    if (!noted) {
      Measure<Rule>(d, w.State(i), w.steps[i]);
      ReadState(rule, d, w.State(i), x, w.steps[i]);
      rule.MakeStep(x, w.steps[i]);
    }
    ReplayToken(rule, p, d, c, t, x, i, w);
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

// The gradients of a token's inputs and the terms of the old state's, from G, the gradient of the new one.
template <class Rule, typename T>
HWY_INLINE void PullToken(Rule& rule, const Dims<T>& d, const T* S, [[maybe_unused]] const T* S_new,
                          const Token<T>& x, Step<T>& step, T* G, StepGrad<T>& g) {
  for (int i = 0; i < Rule::kGates; ++i) g.dgates[i] = T(0);
  if constexpr (Rule::kShrinks) rule.ShrinkAdjoint(S_new, x, step, G, g);
  Pull(S, d.rows, d.stride, step.B, step.h, G, g.dA, g.dB, g.dh);
  rule.AdjointSlots(x, step, g);
  if constexpr (Rule::kPush & kDots) {
    d.ZeroTail(g.P);
    ColumnSum(g.P, S, d.rows, d.stride, g.dz);
  }
  rule.Adjoint(x, step, g);
  if constexpr (Rule::kPush & kReads) {
    RowDots(S, d.rows, d.stride, g.dz, g.dA);  // whose values were used
    for (size_t i = 0; i < d.rows; i += kLanes<T>) rule.ReadSlots(i, Load(g.dA + i), x, step, g);
  }
  if constexpr (Rule::kPush & kScales) d.ZeroTail(g.E);
}

// Tokens [first, last) backwards; G is the gradient of the state, after the last token and then before the
// first. While token t is worked on, G has what y of t adds to it.
template <class Rule, typename T>
HWY_INLINE void BackwardBlock(Rule& rule, const BackwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c,
                              int64_t first, int64_t last, const Upcoming<Rule, T>& next, T* G,
                              Workspace<T>& w) {
  Replay(rule, p, d, c, first, last, w);
  StepGrad<T>& g = w.grad;
  LoadOutputGrad(rule, p, c, last - 1, w.steps[last - 1 - first], w.dy);
  const T* q = LoadToken<Rule>(p, c, last - 1, w).q;
  LinesAhead none;
  const PushTerms<T> read = {w.ones, nullptr, nullptr, nullptr, nullptr, nullptr, q, w.dy, &none};
  Push<kQuery>(w.State(last - first), d.rows, d.stride, read, G);
  for (int64_t t = last - 1; t >= first; --t) {
    const Token<T>& x = w.tokens[t % 2];
    const T* S = w.State(t - first);
    Step<T>& step = w.steps[t - first];
    PullToken(rule, d, S, w.State(t - first + 1), x, step, G, g);
    StoreTokenGrad<Rule>(p, c, t, g);
    LinesAhead lines;
    if (t - 2 >= first) {
      lines.Add(c.At(p.dk, t - 2), p.slots);
      lines.Add(c.At(p.dv, t - 2), p.width);
    }
    next.Add(p, last - 1 - t, lines);
    PushTerms<T> terms = {step.A, g.P, step.h, rule.Weights(x, step), g.dz, g.E, nullptr, w.dy, &lines};
    if (t == first) {
      Push<Rule::kPush>(S, d.rows, d.stride, terms, G);
    } else {
      LoadOutputGrad(rule, p, c, t - 1, w.steps[t - 1 - first], w.dy);
      terms.q = LoadToken<Rule>(p, c, t - 1, w).q;
      Push<Rule::kPush | kQuery>(S, d.rows, d.stride, terms, G);
    }
  }
}

template <class Rule, typename T>
void BackwardGroup(const BackwardProblem<T>& p, const Dims<T>& d, const std::vector<Cell<T>>& cells,
                   Workspace<T>& w) {
  std::vector<Rule> rules;
  for (size_t i = 0; i < cells.size(); ++i) {
    rules.emplace_back(p, d);
    rules[i].LoadGrad(p.dstate_out == nullptr ? nullptr : p.dstate_out + cells[i].StateOffset(p), w.Kept(i));
  }
  const int64_t length = cells[0].length;
  for (int64_t block = length > 0 ? CheckpointsOf(length) : -1; block >= 0; --block) {
    const int64_t first = block * kBlock, last = HWY_MIN(length, first + kBlock);
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool more = i + 1 < cells.size();
      const Upcoming<Rule, T> next(p, cells[more ? i + 1 : 0], more ? first : first - kBlock);
      BackwardBlock(rules[i], p, d, cells[i], first, last, next, w.Kept(i), w);
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) rules[i].SaveGrad(w.Kept(i), p.dstate + cells[i].StateOffset(p));
}

// How many cells go through a sequence together: their matrices stay in a part of the L2 cache.
template <typename T>
HWY_INLINE int64_t GroupSize(const Dims<T>& d) {
  constexpr size_t kBytes = 256 * 1024;
  return HWY_MAX(int64_t{1}, static_cast<int64_t>(kBytes / (d.Matrix() * sizeof(T))));
}

// Cells [first, last) of the problem, in groups of one sequence; run(group, workspace) does the work.
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
  hwy::FlushStream();  // of the notes: another thread may read them
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
