// The scratch buffer of one thread of the chunk kernels: frozen state, tiles of a segment, states, gradients.
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

// S', the state a chunk starts from.
template <typename T>
struct Frozen {
  T* S;           // [rows][stride]
  T* transposed;  // [stride][rows]
  T *s, *inv;     // lengths of the slots, and 1 / s
};

// The tokens of one tile: inputs, and the terms that follow from them and the frozen state (terms-inl.h).
// Everything is [tokens][rows] unless it says otherwise.
template <typename T>
struct Tile {
  size_t tokens;
  T *q, *k;
  T *gamma, *mu;                 // [tokens]
  T *reads, *a, *ch, *r, *beta;  // k_i / s_i (Dec), <Phi_i, h>, c_i / s_i, |h|^2 - a_i^2, normalisation
  T *G, *W, *R;                  // the terms of the linear recurrence
  T *from_start, *to_end;        // A_t = G_1 .. G_t and B_t = G_{t+1} .. G_n
  T* through;                    // F_t, the weight of S' in X_t (linear1)
  T* H;                          // [tokens][stride]: h of every token; padded to whole vectors of tokens
  T* P;  // scores [tokens][kTile]: P_tj = sum_m q_tm W_jm G_{j+1,m} .. G_{t,m} for j <= t
};

// Gradients of one tile, of what their names say after the d; [kTile][rows] unless it says otherwise.
template <typename T>
struct TileGrad {
  T *dq, *dk, *dG, *dW, *dR, *dA, *dB;
  T* ddots;    // of the dots <S'_i, h>
  T *dy, *dh;  // [kTile][stride]
  T* dP;       // [kTile][kTile]
  T* dU;       // of u_tj = q_t G_t .. G_{j+1}, for one j at a time
};

template <typename T>
class Scratch {
 public:
  static constexpr size_t kTokens = ChunkPlan::kSegment, kTile = ChunkPlan::kTile;
  // Room for the state before every tile of a segment and after every chunk.
  static constexpr size_t kStates = 2 * ChunkPlan::kSegmentTiles + 1;

  // `cells` cells go through a sequence together, with `per_cell` matrices each.
  Scratch(const Dims<T>& dims, bool backward, size_t cells, size_t per_cell)
      : d_(dims), matrices_per_cell_(per_cell) {
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
  // Matrix i of a cell of the group, and its gradient of the frozen lengths: carried from segment to segment.
  T* CellMatrix(size_t cell, size_t i) const {
    return cell_matrices_ + (cell * matrices_per_cell_ + i) * d_.Matrix();
  }
  T* LengthGrad(size_t cell) const { return lengths_ + cell * d_.rows; }

  Frozen<T> frozen;
  TileGrad<T> grad;
  T* products;                      // [kTile][rows]: an element-wise product such as Q*A
  T* queries;                       // [j][t][rows]: u_tj = q_t G_t .. G_{j+1}
  T* y;                             // [kTile][stride]
  T *X_transposed, *dX_transposed;  // the state before a tile and the gradient of the state after it

 private:
  // The size of every array is a multiple of a vector or of kTile = 16 elements, so all of them are aligned.
  void Place(bool backward, size_t cells, Layout<T>& layout) {
    const size_t matrix = d_.Matrix();
    frozen = {layout.Take(matrix), layout.Take(matrix), layout.Take(d_.rows), layout.Take(d_.rows)};
    for (T** x : PerSlot(all_)) *x = layout.Take(kTokens * d_.rows);
    all_.gamma = layout.Take(kTokens);
    all_.mu = layout.Take(kTokens);
    all_.H = layout.Take((kTokens + kTile) * d_.stride);
    all_.P = layout.Take(kTokens * kTile);
    products = layout.Take(kTile * d_.rows);
    y = layout.Take(kTile * d_.stride);
    if (backward) PlaceGradients(layout);
    states_ = layout.Take((backward ? kStates : 1) * matrix);
    cell_matrices_ = layout.Take(cells * matrices_per_cell_ * matrix);
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
    X_transposed = layout.Take(d_.Matrix());
    dX_transposed = layout.Take(d_.Matrix());
  }

  // The arrays of a tile that are [tokens][rows].
  static std::array<T**, 13> PerSlot(Tile<T>& t) {
    return {&t.q, &t.k, &t.reads, &t.a,          &t.ch,     &t.r,      &t.beta,
            &t.G, &t.W, &t.R,     &t.from_start, &t.to_end, &t.through};
  }

  const Dims<T> d_;
  const size_t matrices_per_cell_;
  Tile<T> all_ = {};
  T *states_, *cell_matrices_, *lengths_;
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_CHUNK_SCRATCH_INL_H_
