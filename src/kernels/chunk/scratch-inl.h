// The scratch memory of one thread of the chunk kernels.
#if defined(LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_
#undef LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_
#else
#define LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_
#endif

#include <array>
#include <cstring>
#include <span>

#include "kernels/chunk/chunk.h"
#include "kernels/chunk/products-inl.h"
#include "kernels/engine/workspace-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

// The state a chunk starts from.
template <typename T>
struct Frozen {
  T* S;        // [rows][stride]
  T* across;   // transposed: [stride][rows]
  T *s, *inv;  // lengths of the slots, and 1 / s
};

// The tokens of one tile: inputs, and what the frozen state makes of them. All but H are [tokens][rows].
template <typename T>
struct Tile {
  size_t tokens;
  T *q, *k;
  T *gamma, *mu;                     // one a token
  T *reads, *a, *ch, *r, *beta;      // k / s, <Phi_i, h>, c_i / s_i, |h|^2 - a_i^2, normalisation
  T *G, *W, *R;                      // the terms
  T *from_start, *to_end, *through;  // products of gates: A, B; F, the share of the frozen state in linear1
  T* H;  // [tokens][stride], with room for whole vectors of tokens behind the segment
  T* P;  // [tokens][kTile]: sum_m q_tm W_jm G_{j+1} .. G_t for j <= t
};

// Gradients around one tile, [kTile][rows] but for dy and dh.
template <typename T>
struct TileGrad {
  T *dq, *dk, *dG, *dW, *dR, *dA, *dB;
  T* ddots;    // of <S'_i, h>
  T *dy, *dh;  // [kTile][stride]
  T* dP;       // [kTile][kTile]
  T* dU;       // of q_t times products of gates
};

template <typename T>
class Scratch {
 public:
  static constexpr size_t kTokens = ChunkPlan::kSegment, kTile = ChunkPlan::kTile;
  // Enough for a state before every tile of a segment and behind every chunk.
  static constexpr size_t kStates = 2 * ChunkPlan::kSegmentTiles + 1;

  // `cells` go through a sequence together, with `kept` matrices each.
  Scratch(const Dims<T>& dims, bool backward, size_t cells, size_t kept) : d_(dims), kept_per_cell_(kept) {
    const std::span<T> all = PlaceInArena<T>([&](Layout<T>& layout) { Place(backward, cells, layout); });
    std::memset(static_cast<void*>(all.data()), 0, all.size_bytes());
  }

  // Tokens [first, first + count) of the segment.
  Tile<T> At(size_t first, size_t count) const {
    Tile<T> t = all_;
    t.tokens = count;
    for (T** x : PerSlot(t)) *x += first * d_.rows;
    t.gamma += first;
    t.mu += first;
    t.H += first * d_.stride;
    t.P += first * kTile;
    return t;
  }

  T* State(size_t i) const { return states_ + i * d_.Matrix(); }
  // Matrix i of a cell of the group, and its gradient of the frozen lengths.
  T* Kept(size_t cell, size_t i) const { return kept_ + (cell * kept_per_cell_ + i) * d_.Matrix(); }
  T* LengthGrad(size_t cell) const { return lengths_ + cell * d_.rows; }

  Frozen<T> frozen;
  TileGrad<T> grad;
  T* products;              // [kTile][rows]
  T* queries;               // q_t times the products of gates down to token j: [j][t][rows]
  T* row;                   // a vector over slots or width
  T* y;                     // [kTile][stride]
  T *across, *across_grad;  // a state and its gradient, transposed

 private:
  // Lengths are whole vectors, or multiples of kTile = 16 elements, so every piece is aligned.
  void Place(bool backward, size_t cells, Layout<T>& layout) {
    const size_t matrix = d_.Matrix();
    frozen = {layout.Take(matrix), layout.Take(matrix), layout.Take(d_.rows), layout.Take(d_.rows)};
    for (T** x : PerSlot(all_)) *x = layout.Take(kTokens * d_.rows);
    all_.gamma = layout.Take(kTokens);
    all_.mu = layout.Take(kTokens);
    all_.H = layout.Take((kTokens + kTile) * d_.stride);
    all_.P = layout.Take(kTokens * kTile);
    products = layout.Take(kTile * d_.rows);
    row = layout.Take(HWY_MAX(d_.rows, d_.stride));
    y = layout.Take(kTile * d_.stride);
    if (backward) PlaceGradients(layout);
    states_ = layout.Take((backward ? kStates : 1) * matrix);
    kept_ = layout.Take(cells * kept_per_cell_ * matrix);
    lengths_ = layout.Take(cells * d_.rows);
  }

  void PlaceGradients(Layout<T>& layout) {
    for (T** x :
         {&grad.dq, &grad.dk, &grad.dG, &grad.dW, &grad.dR, &grad.dA, &grad.dB, &grad.ddots, &grad.dU}) {
      *x = layout.Take(kTile * d_.rows);
    }
    grad.dy = layout.Take(kTile * d_.stride);
    grad.dh = layout.Take(kTile * d_.stride);
    grad.dP = layout.Take(kTile * kTile);
    queries = layout.Take(kTile * kTile * d_.rows);
    across = layout.Take(d_.Matrix());
    across_grad = layout.Take(d_.Matrix());
  }

  // The parts of a tile with a row of slots for every token.
  static std::array<T**, 13> PerSlot(Tile<T>& t) {
    return {&t.q, &t.k, &t.reads, &t.a,          &t.ch,     &t.r,      &t.beta,
            &t.G, &t.W, &t.R,     &t.from_start, &t.to_end, &t.through};
  }

  const Dims<T> d_;
  const size_t kept_per_cell_;
  Tile<T> all_ = {};
  T *states_, *kept_, *lengths_;
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_
