// The loop that runs any recurrent rule over a sequence, forward and backward: written once, here.
//
// A rule is a class template over the element type, derived from RuleBase, that says how a token and the
// state become a step S_new = diag(A) S - B h^T, and the adjoint of that. docs/adding-a-memory.md shows one
// in full.
#if defined(LATTICE_KERNELS_ENGINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_ENGINE_INL_H_
#undef LATTICE_KERNELS_ENGINE_INL_H_
#else
#define LATTICE_KERNELS_ENGINE_INL_H_
#endif

#include <vector>

#include "kernels/problem.h"
#include "kernels/update-inl.h"
#include "kernels/workspace-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

// Defaults of a rule. One object lives for one pass over one cell, so a rule may carry what is not in the
// matrix. Besides what stands here, a rule has
//   MakeStep(S, x, step)    sets step.A, step.B and step.h
//   Adjoint(x, step, g)     from g.dA, g.dB, g.dh to the gradients of the inputs and to g.dz
template <typename T>
struct RuleBase {
  static constexpr int kPush = 0;             // PushParts: how S enters A, B and h
  static constexpr bool kMeasures = false;    // wants the lengths of the slots
  static constexpr bool kSlotMu = false;      // mu is [B,T,H,M]
  static constexpr bool kReadOut = false;     // y is more than q @ S_new: has Read and ReadAdjoint
  static constexpr bool kShrinks = false;     // has Shrink and ShrinkAdjoint
  static constexpr size_t kExtraColumns = 0;  // columns of the matrix beside the values, driven by v = 1

  RuleBase(const Problem<T>& problem, const Dims<T>& dims) : p(problem), d(dims) {}

  // First of all: what needs no pass over the state.
  HWY_INLINE void Begin(const Token<T>&, Step<T>&) {}
  // kReads: the weights w of step.z = w @ S.
  HWY_INLINE const T* Weights(const Token<T>& x, const Step<T>&) const { return x.k; }

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
  // The state kept after `block` blocks of tokens, block >= 1.
  int64_t CheckpointOffset(const Problem<T>& p, int64_t block) const {
    return ((p.sequences[sequence].checkpoint + block - 1) * heads + head) * p.state_size;
  }
};

// Brings the lines of n elements near, to be written if kWrite.
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

// The share of token t in the state to be kept after its block: written all at once without this, it costs
// the forward pass 160 cycles a token (7 %).
template <typename T>
HWY_INLINE void PrefetchCheckpoint(const ForwardProblem<T>& p, const Cell<T>& c, int64_t t) {
  const int64_t block = t / kBlock + 1, share = (p.state_size + kBlock - 1) / kBlock;
  if (p.checkpoints == nullptr || block * kBlock >= c.length) return;
  PrefetchLines<true>(p.checkpoints + c.CheckpointOffset(p, block) + t % kBlock * share, share);
}

// What the way back will read and write at t, besides the inputs: without this it waits for memory, 12 % of
// the backward pass at H = 12, T = 2048.
template <typename T>
HWY_INLINE void PrefetchGrads(const BackwardProblem<T>& p, const Cell<T>& c, int64_t t) {
  PrefetchLines<false>(c.At(p.dy, t), p.width);
  PrefetchLines<true>(c.At(p.dq, t), p.slots);
  PrefetchLines<true>(c.At(p.dk, t), p.slots);
  PrefetchLines<true>(c.At(p.dv, t), p.width);
}

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
  if (p.gamma) x.gamma = *c.At(p.gamma, t);
  if (p.lam) x.lam = *c.At(p.lam, t);
  if (p.igate) x.igate = *c.At(p.igate, t);
  if (p.fgate) x.fgate = *c.At(p.fgate, t);
  if constexpr (Rule::kSlotMu) {
    x.mu_slots = Padded(c.At(p.mu, t), p.slots, copies.mu_slots);
  } else if (p.mu) {
    x.mu = *c.At(p.mu, t);
  }
  return x;
}

// The norms of a state that no Update measured.
template <class Rule, typename T>
HWY_INLINE void Measure(const Dims<T>& d, const T* S, const Step<T>& step) {
  if constexpr (Rule::kMeasures) RowNorms(S, d.rows, d.stride, step.lengths.norms);
}

// One token: S -> S_new, which may be the same memory; `next` is told the norms. kParts says what Update does
// besides.
template <class Rule, int kParts, typename T>
HWY_INLINE void Advance(Rule& rule, const Dims<T>& d, const T* S, const Token<T>& x, Step<T>& step, T* S_new,
                        T* y, const Step<T>& next) {
  rule.Begin(x, step);
  if constexpr (Rule::kPush & kReads) {
    ColumnSum(rule.Weights(x, step), S, d.rows, d.stride, step.z);
  }
  rule.MakeStep(S, x, step);
  d.ZeroTail(step.A);
  d.ZeroTail(step.B);
  const T *from = S, *A = step.A, *B = step.B;
  if constexpr (Rule::kShrinks) {
    rule.Shrink(S, x, step, S_new);
    from = S_new;
    A = rule.Rescaling(step);
    B = rule.Zeros(step);
  }
  constexpr int kMore = Rule::kMeasures ? kMeasure : 0;
  Update<kParts | kMore>(from, d.rows, d.stride, A, B, step.h, x.q, S_new, y, next.lengths.norms);
}

// Tokens [first, last) of a cell whose state is S.
template <class Rule, typename T>
HWY_INLINE void ForwardBlock(Rule& rule, const ForwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c,
                             int64_t first, int64_t last, T* S, Workspace<T>& w) {
  if (p.checkpoints != nullptr && first > 0) {
    rule.Save(S, p.checkpoints + c.CheckpointOffset(p, first / kBlock));
  }
  Measure<Rule>(d, S, w.steps[0]);
  PrefetchToken(p, c, first);
  PrefetchToken(p, c, first + 1);
  for (int64_t t = first; t < last; ++t) {
    PrefetchToken(p, c, t + 2);
    if (t + 2 < last) PrefetchLines<true>(c.At(p.y, t + 2), p.width);
    PrefetchCheckpoint(p, c, t);
    const Token<T>& x = LoadToken<Rule>(p, c, t, w);
    T* out = c.At(p.y, t);
    T* y = Rule::kExtraColumns == 0 && IsWhole(out, p.width) ? out : w.y;
    Advance<Rule, kRead>(rule, d, S, x, w.steps[0], S, y, w.steps[0]);
    if constexpr (Rule::kReadOut) rule.Read(x, w.steps[0], y);
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

// The states and steps of tokens [first, last) from the state kept at `first`.
template <class Rule, typename T>
HWY_INLINE void Replay(Rule& rule, const BackwardProblem<T>& p, const Dims<T>& d, const Cell<T>& c,
                       int64_t first, int64_t last, Workspace<T>& w) {
  const T* kept =
      first == 0 ? p.state + c.StateOffset(p) : p.checkpoints + c.CheckpointOffset(p, first / kBlock);
  rule.Load(kept, w.State(0));
  Measure<Rule>(d, w.State(0), w.steps[0]);
  for (int64_t t = first; t < last; ++t) {
    const size_t i = t - first;
    PrefetchToken(p, c, t + 2);
    PrefetchGrads(p, c, t);
    const Token<T>& x = LoadToken<Rule>(p, c, t, w);
    constexpr int kParts = Rule::kReadOut ? kRead : 0;
    Advance<Rule, kParts>(rule, d, w.State(i), x, w.steps[i], w.State(i + 1), w.y, w.steps[i + 1]);
    if constexpr (Rule::kReadOut) rule.Read(x, w.steps[i], w.y);
  }
}

template <class Rule, typename T>
HWY_INLINE void LoadOutputGrad(Rule& rule, const BackwardProblem<T>& p, const Cell<T>& c, int64_t t,
                               Step<T>& step, T* dy) {
  Copy(c.At(p.dy, t), p.width, dy);
  if constexpr (Rule::kReadOut) rule.ReadAdjoint(step, dy);
}

template <class Rule, typename T>
HWY_INLINE void StoreTokenGrad(const BackwardProblem<T>& p, const Cell<T>& c, int64_t t,
                               const StepGrad<T>& g) {
  Copy(g.dq, p.slots, c.At(p.dq, t));
  Copy(g.dk, p.slots, c.At(p.dk, t));
  Copy(g.dv, p.width, c.At(p.dv, t));
  if (p.dgamma) *c.At(p.dgamma, t) = g.dgamma;
  if (p.dlam) *c.At(p.dlam, t) = g.dlam;
  if (p.digate) *c.At(p.digate, t) = g.digate;
  if (p.dfgate) *c.At(p.dfgate, t) = g.dfgate;
  if constexpr (Rule::kSlotMu) {
    Copy(g.dmu_slots, p.slots, c.At(p.dmu, t));
  } else if (p.dmu) {
    *c.At(p.dmu, t) = g.dmu;
  }
}

// The gradients of a token's inputs and the terms of the old state's, from G, the gradient of the new one.
template <class Rule, typename T>
HWY_INLINE void PullToken(Rule& rule, const Dims<T>& d, const T* S, [[maybe_unused]] const T* S_new,
                          const Token<T>& x, Step<T>& step, T* G, StepGrad<T>& g) {
  g.dgamma = g.dmu = g.dlam = g.digate = g.dfgate = T(0);
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
                              int64_t first, int64_t last, T* G, Workspace<T>& w) {
  Replay(rule, p, d, c, first, last, w);
  StepGrad<T>& g = w.grad;
  LoadOutputGrad(rule, p, c, last - 1, w.steps[last - 1 - first], w.dy);
  const T* q = LoadToken<Rule>(p, c, last - 1, w).q;
  const PushTerms<T> read = {w.ones, nullptr, nullptr, nullptr, nullptr, nullptr, q, w.dy, g.dq};
  Push<kQuery>(w.State(last - first), d.rows, d.stride, read, G);
  for (int64_t t = last - 1; t >= first; --t) {
    const Token<T>& x = w.tokens[t % 2];
    const T* S = w.State(t - first);
    Step<T>& step = w.steps[t - first];
    PullToken(rule, d, S, w.State(t - first + 1), x, step, G, g);
    StoreTokenGrad<Rule>(p, c, t, g);
    PushTerms<T> terms = {step.A, g.P, step.h, rule.Weights(x, step), g.dz, g.E, nullptr, w.dy, g.dq};
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
    for (size_t i = 0; i < cells.size(); ++i)
      BackwardBlock(rules[i], p, d, cells[i], first, last, w.Kept(i), w);
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

#endif  // LATTICE_KERNELS_ENGINE_INL_H_
