// The scratch memory of one thread of the chunk kernels.
#if defined(LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_
#undef LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_
#else
#define LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_
#endif

#include "kernels/chunk/chunk.h"
#include "kernels/chunk/products-inl.h"
#include "kernels/workspace-inl.h"

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
    const size_t states = backward ? kStates : 1;
    const size_t bytes =
        sizeof(T) * (Size(backward) + (states + cells * kept + 5) * dims.Matrix() + cells * dims.rows);
    next_ = static_cast<T*>(ThreadArena(bytes));
    std::memset(static_cast<void*>(next_), 0, bytes);
    frozen = {Take(dims.Matrix()), Take(dims.Matrix()), Take(dims.rows), Take(dims.rows)};
    all_ = {0,
            PerSlot(),
            PerSlot(),
            Take(kTokens),
            Take(kTokens),
            PerSlot(),
            PerSlot(),
            PerSlot(),
            PerSlot(),
            PerSlot(),
            PerSlot(),
            PerSlot(),
            PerSlot(),
            PerSlot(),
            PerSlot(),
            PerSlot(),
            Take((kTokens + kTile) * dims.stride),
            Take(kTokens * kTile)};
    products = Take(kTile * dims.rows);
    row = Take(HWY_MAX(dims.rows, dims.stride));
    y = Take(kTile * dims.stride);
    if (backward) {
      grad = {TileSlots(),
              TileSlots(),
              TileSlots(),
              TileSlots(),
              TileSlots(),
              TileSlots(),
              TileSlots(),
              TileSlots(),
              Take(kTile * dims.stride),
              Take(kTile * dims.stride),
              Take(kTile * kTile),
              TileSlots()};
      queries = Take(kTile * kTile * dims.rows);
      across = Take(dims.Matrix());
      across_grad = Take(dims.Matrix());
    }
    states_ = Take(states * dims.Matrix());
    kept_ = Take(cells * kept * dims.Matrix());
    lengths_ = Take(cells * dims.rows);
  }

  // Tokens [first, first + count) of the segment.
  Tile<T> At(size_t first, size_t count) const {
    Tile<T> t = all_;
    t.tokens = count;
    for (T** x : {&t.q, &t.k, &t.reads, &t.a, &t.ch, &t.r, &t.beta, &t.G, &t.W, &t.R, &t.from_start,
                  &t.to_end, &t.through}) {
      *x += first * d_.rows;
    }
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
  size_t Size(bool backward) const {
    const size_t forward =
        (13 * kTokens + kTile + 3) * d_.rows + (kTokens + 2 * kTile + 1) * d_.stride + kTokens * (2 + kTile);
    const size_t more = (9 * kTile + kTile * kTile) * d_.rows + 2 * kTile * d_.stride + kTile * kTile;
    return forward + (backward ? more : 0);
  }
  // Lengths here are whole vectors, or multiples of kTile = 16 elements.
  T* Take(size_t count) {
    T* p = next_;
    next_ += count;
    return p;
  }
  T* PerSlot() { return Take(kTokens * d_.rows); }
  T* TileSlots() { return Take(kTile * d_.rows); }

  const Dims<T> d_;
  const size_t kept_per_cell_;
  Tile<T> all_;
  T *next_, *states_, *kept_, *lengths_;
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_
