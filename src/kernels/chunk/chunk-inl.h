// The chunk forms linear1 and linear2 (docs/exact-or-chunked.md) over whole sequences, forward and backward.
//
// A chunk freezes its first state S', from which the terms of all its tokens are computed (terms-inl.h); what
// is left is linear in the state X and goes a tile of tokens at a time, as products of matrices (tile-inl.h).
// This file walks chunks, segments and tiles (plan.h) in order. The backward pass recomputes the states of a
// segment from the checkpoint before it, then goes through its tiles from the last to the first.
#if defined(LATTICE_KERNELS_CHUNK_CHUNK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_CHUNK_CHUNK_INL_H_
#undef LATTICE_KERNELS_CHUNK_CHUNK_INL_H_
#else
#define LATTICE_KERNELS_CHUNK_CHUNK_INL_H_
#endif

#include <cmath>
#include <vector>

#include "kernels/chunk/tile-inl.h"
#include "kernels/engine/engine-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

// Tokens [begin, end), a range inside one chunk and one segment.
struct Piece {
  int64_t begin, end;
  bool opens, closes;  // whether it begins its chunk, and whether it ends it
};

// The pieces of a segment, in a sequence of `length` tokens.
inline std::vector<Piece> PiecesOf(const ChunkPlan& plan, int64_t segment, int64_t length) {
  const int64_t begin = plan.Begin(segment);
  if (plan.Long()) {
    const int64_t start = begin / plan.chunk * plan.chunk;
    const int64_t chunk_end = length - start < plan.chunk ? length : start + plan.chunk;
    const int64_t end = HWY_MIN(begin + ChunkPlan::kSegment, chunk_end);
    return {{begin, end, begin == start, end == chunk_end}};
  }
  std::vector<Piece> pieces;
  const int64_t last = HWY_MIN(length, begin + plan.Step());
  for (int64_t at = begin; at < last; at += plan.chunk) {
    pieces.push_back({at, HWY_MIN(last, at + plan.chunk), true, true});
  }
  return pieces;
}

// Runs the forward and backward pass over a group of cells of one sequence. For each cell it carries two
// matrices from segment to segment: forward X and the frozen state S', backward their gradients.
template <typename T>
class ChunkCells {
 public:
  ChunkCells(const ChunkRule& rule, const Problem<T>& p, const Dims<T>& d, bool backward, size_t cells)
      : rule_(rule), p_(p), d_(d), w_(d, backward, cells, 2), tiles_{rule, d, w_} {}

  void Forward(const ForwardProblem<T>& p, const std::vector<Cell<T>>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      LoadMatrix(d_, p.state + cells[i].StateOffset(p), d_.width, w_.CellMatrix(i, 0));
    }
    const int64_t length = cells[0].length;
    for (int64_t segment = 0; segment < rule_.plan.Segments(length); ++segment) {
      const auto pieces = PiecesOf(rule_.plan, segment, length);
      for (size_t i = 0; i < cells.size(); ++i) ForwardSegment(p, cells[i], i, segment, pieces);
    }
    for (size_t i = 0; i < cells.size(); ++i) {
      StoreMatrix(d_, w_.CellMatrix(i, 0), d_.width, p.state_out + cells[i].StateOffset(p));
    }
  }

  void Backward(const BackwardProblem<T>& p, const std::vector<Cell<T>>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const T* given = p.dstate_out == nullptr ? nullptr : p.dstate_out + cells[i].StateOffset(p);
      LoadMatrix(d_, given, given == nullptr ? 0 : d_.width, w_.CellMatrix(i, 0));
      Fill(T(0), d_.Matrix(), w_.CellMatrix(i, 1));
      Fill(T(0), d_.rows, w_.LengthGrad(i));
    }
    const int64_t length = cells[0].length;
    for (int64_t segment = rule_.plan.Segments(length) - 1; segment >= 0; --segment) {
      const auto pieces = PiecesOf(rule_.plan, segment, length);
      for (size_t i = 0; i < cells.size(); ++i) BackwardSegment(p, cells[i], i, segment, pieces);
    }
    for (size_t i = 0; i < cells.size(); ++i) {
      StoreMatrix(d_, w_.CellMatrix(i, 0), d_.width, p.dstate + cells[i].StateOffset(p));
    }
  }

 private:
  bool Rescales() const { return rule_.normalize == Normalize::kChunk; }

  // Makes S the frozen state S', with its transpose and the lengths of its slots.
  HWY_NOINLINE void Freeze(const T* S) {
    if (S != w_.frozen.S) Copy(S, d_.Matrix(), w_.frozen.S);
    RowNorms(w_.frozen.S, d_.rows, d_.stride, w_.frozen.s);
    for (size_t i = 0; i < d_.rows; i += kLanes<T>) {
      const auto s = Lengths<T>::Of(Load(w_.frozen.s + i));
      Store(s, w_.frozen.s + i);
      Store(hn::Div(Set(T(1)), s), w_.frozen.inv + i);
    }
    Transpose(w_.frozen.S, d_.rows, d_.stride, w_.frozen.transposed);
  }

  // Loads tokens [begin, end) as the tile at token `at` of the segment, and computes its terms.
  HWY_INLINE Tile<T> LoadTile(const Cell<T>& c, int64_t begin, int64_t end, size_t at) {
    const Tile<T> t = w_.At(at, end - begin);
    for (size_t x = 0; x < t.tokens; ++x) {
      const int64_t time = begin + static_cast<int64_t>(x);
      Copy(c.At(p_.q, time), d_.slots, t.q + x * d_.rows);
      Copy(c.At(p_.k, time), d_.slots, t.k + x * d_.rows);
      T* v = t.H + x * d_.stride;
      Copy(c.At(p_.v, time), d_.width, v);
      for (size_t j = d_.width; j < d_.stride; ++j) v[j] = T(0);
      t.gamma[x] = *c.At(p_.gates[kGammaGate], time);
      t.mu[x] = p_.gates[kMuGate] ? *c.At(p_.gates[kMuGate], time) : T(1);
    }
    tiles_.Terms().MakeTerms(t);
    tiles_.MultiplyGates(t);
    return t;
  }

  // Chunk normalisation, which gives the slots the lengths they have in S':
  //   X_new,i = X_i s_i / sqrt(|X_i|^2 + eps^2)
  void Rescale(const T* X, T* X_new) {
    for (size_t i = 0; i < d_.rows; ++i) {
      const T* row = X + i * d_.stride;
      const T length = std::sqrt(Dot(row, row, d_.stride) + Lengths<T>::kEps2);
      Scale(w_.frozen.s[i] / length, row, d_.stride, X_new + i * d_.stride);
    }
  }

  // dX, the gradient of the rescaled state, becomes that of X; ds gains that of the frozen lengths s.
  void RescaleAdjoint(const T* X, T* dX, T* ds) {
    for (size_t i = 0; i < d_.rows; ++i) {
      const T* row = X + i * d_.stride;
      T* drow = dX + i * d_.stride;
      const T length = std::sqrt(Dot(row, row, d_.stride) + Lengths<T>::kEps2);
      const T along = Dot(row, drow, d_.stride), s = w_.frozen.s[i];
      ds[i] += along / length;
      Scale(s / length, drow, d_.stride, drow);
      AddScaled(-along * s / (length * length * length), row, d_.stride, drow);
    }
  }

  void ForwardSegment(const ForwardProblem<T>& p, const Cell<T>& c, size_t cell, int64_t segment,
                      const std::vector<Piece>& pieces) {
    T* X = w_.CellMatrix(cell, 0);
    if (p.checkpoints != nullptr && segment > 0) {
      StoreMatrix(d_, X, d_.width, p.checkpoints + c.CheckpointOffset(p, segment));
    }
    for (const Piece& piece : pieces) {
      Freeze(piece.opens ? X : w_.CellMatrix(cell, 1));
      if (piece.opens && !piece.closes) Copy(X, d_.Matrix(), w_.CellMatrix(cell, 1));
      for (int64_t at = piece.begin; at < piece.end; at += ChunkPlan::kTile) {
        const int64_t end = HWY_MIN(piece.end, at + ChunkPlan::kTile);
        const Tile<T> t = LoadTile(c, at, end, 0);
        tiles_.ReadOut(t, X, w_.y);
        for (size_t x = 0; x < t.tokens; ++x) Copy(w_.y + x * d_.stride, d_.width, c.At(p.y, at + x));
        tiles_.Advance(t, X, X);
      }
      if (piece.closes && Rescales()) Rescale(X, X);
    }
  }

  // The state before a segment.
  const T* CheckpointAt(const BackwardProblem<T>& p, const Cell<T>& c, int64_t segment) const {
    return segment == 0 ? p.state + c.StateOffset(p) : p.checkpoints + c.CheckpointOffset(p, segment);
  }

  // Freezes the state that the chunk of this segment began with.
  void FreezeCheckpoint(const BackwardProblem<T>& p, const Cell<T>& c, int64_t segment) {
    LoadMatrix(d_, CheckpointAt(p, c, rule_.plan.ChunkSegment(segment)), d_.width, w_.frozen.S);
    Freeze(w_.frozen.S);
  }

  void BackwardSegment(const BackwardProblem<T>& p, const Cell<T>& c, size_t cell, int64_t segment,
                       const std::vector<Piece>& pieces) {
    LoadMatrix(d_, CheckpointAt(p, c, segment), d_.width, w_.State(0));
    // Recomputes the state before every tile, and the state at the end of a chunk before it is rescaled.
    std::vector<size_t> first_state;
    size_t state = 0;
    const int64_t begin = pieces[0].begin;
    for (const Piece& piece : pieces) {
      first_state.push_back(state);
      if (piece.opens) {
        Freeze(w_.State(state));
      } else {
        FreezeCheckpoint(p, c, segment);
      }
      for (int64_t at = piece.begin; at < piece.end; at += ChunkPlan::kTile, ++state) {
        const Tile<T> t = LoadTile(c, at, HWY_MIN(piece.end, at + ChunkPlan::kTile), at - begin);
        tiles_.Advance(t, w_.State(state), w_.State(state + 1));
      }
      if (piece.closes && Rescales()) {
        Rescale(w_.State(state), w_.State(state + 1));
        ++state;
      }
    }
    for (size_t i = pieces.size(); i-- > 0;) {
      // For the last piece the right state is still frozen.
      if (i + 1 < pieces.size()) Freeze(w_.State(first_state[i]));
      BackwardPiece(p, c, cell, begin, pieces[i], first_state[i]);
    }
  }

  void BackwardPiece(const BackwardProblem<T>& p, const Cell<T>& c, size_t cell, int64_t begin,
                     const Piece& piece, size_t first_state) {
    T *dX = w_.CellMatrix(cell, 0), *dS = w_.CellMatrix(cell, 1), *ds = w_.LengthGrad(cell);
    const int64_t tiles = (piece.end - piece.begin + ChunkPlan::kTile - 1) / ChunkPlan::kTile;
    if (piece.closes && Rescales()) RescaleAdjoint(w_.State(first_state + tiles), dX, ds);
    for (int64_t i = tiles - 1; i >= 0; --i) {
      const int64_t at = piece.begin + i * ChunkPlan::kTile, end = HWY_MIN(piece.end, at + ChunkPlan::kTile);
      const Tile<T> t = w_.At(at - begin, end - at);
      for (size_t x = 0; x < t.tokens; ++x) Copy(c.At(p.dy, at + x), d_.width, w_.grad.dy + x * d_.stride);
      T dgamma[ChunkPlan::kTile], dmu[ChunkPlan::kTile];
      tiles_.Backward(t, w_.State(first_state + i), dX, dS, ds, dgamma, dmu);
      StoreTile(p, c, at, t.tokens, dgamma, dmu);
    }
    if (!piece.opens) return;
    // The chunk begins here, so S' was X: dX gains dS and, through s_i = |S'_i|, ds_i S'_i / s_i.
    for (size_t i = 0; i < d_.rows; ++i) {
      const size_t row = i * d_.stride;
      AddScaled(T(1), dS + row, d_.stride, dX + row);
      AddScaled(ds[i] * w_.frozen.inv[i], w_.frozen.S + row, d_.stride, dX + row);
    }
    Fill(T(0), d_.Matrix(), dS);
    Fill(T(0), d_.rows, ds);
  }

  // Copies the gradients of a tile's inputs to the caller's tensors. dh is that of v up to its sign.
  HWY_INLINE void StoreTile(const BackwardProblem<T>& p, const Cell<T>& c, int64_t at, size_t tokens,
                            const T* dgamma, const T* dmu) {
    const TileGrad<T>& g = w_.grad;
    if (rule_.objective != Objective::kEnc) Scale(T(-1), g.dh, tokens * d_.stride, g.dh);
    for (size_t x = 0; x < tokens; ++x) {
      const int64_t time = at + static_cast<int64_t>(x);
      Copy(g.dq + x * d_.rows, d_.slots, c.At(p.dq, time));
      Copy(g.dk + x * d_.rows, d_.slots, c.At(p.dk, time));
      Copy(g.dh + x * d_.stride, d_.width, c.At(p.dv, time));
      *c.At(p.dgates[kGammaGate], time) = dgamma[x];
      if (p.dgates[kMuGate]) *c.At(p.dgates[kMuGate], time) = dmu[x];
    }
  }

  const ChunkRule& rule_;
  const Problem<T>& p_;
  const Dims<T>& d_;
  Scratch<T> w_;
  TileRunner<T> tiles_;
};

// Calls run(work, group) for cells [first, last), in groups of cells of one sequence that advance together, a
// segment at a time, because the heads of a token lie side by side in memory.
template <typename T, class Run>
HWY_INLINE void OverChunkGroups(const ChunkRule& rule, const Problem<T>& p, bool backward, int64_t first,
                                int64_t last, const Run& run) {
  constexpr int64_t kCells = 4;
  const Dims<T> d(p.slots, p.width);
  ChunkCells<T> work(rule, p, d, backward, HWY_MIN(kCells, last - first));
  std::vector<Cell<T>> group;
  for (int64_t cell = first; cell < last; ++cell) {
    group.emplace_back(p, cell);
    const bool same = cell + 1 < last && (cell + 1) / p.heads == cell / p.heads;
    if (same && static_cast<int64_t>(group.size()) < kCells) continue;
    run(work, group);
    group.clear();
  }
}

template <typename T>
void ForwardChunks(const ChunkRule& rule, const ForwardProblem<T>& p, int64_t first, int64_t last) {
  OverChunkGroups<T>(rule, p, false, first, last,
                     [&](ChunkCells<T>& work, const std::vector<Cell<T>>& cells)
                         HWY_ATTR { work.Forward(p, cells); });
}

template <typename T>
void BackwardChunks(const ChunkRule& rule, const BackwardProblem<T>& p, int64_t first, int64_t last) {
  OverChunkGroups<T>(rule, p, true, first, last,
                     [&](ChunkCells<T>& work, const std::vector<Cell<T>>& cells)
                         HWY_ATTR { work.Backward(p, cells); });
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_CHUNK_CHUNK_INL_H_
