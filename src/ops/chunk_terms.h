// What the tokens of one chunk do to the state it starts from, as products of matrices
// (docs/exact-or-chunked.md).
//
//   X_t = G_t (.) X_{t-1} + F_t (.) S' - W_t (x) H_t        y_t = q_t @ X_t
// S' [N,M,D] is the state at the chunk's start, of N heads at once; F is zero but for linear1.
#ifndef LATTICE_OPS_CHUNK_TERMS_H_
#define LATTICE_OPS_CHUNK_TERMS_H_

#include <ATen/core/Tensor.h>

#include <utility>

#include "ops/chunk_form.h"

namespace lattice {

// C tokens of N heads, C a power of two: q, k [N,C,M], v [N,C,D], gamma and mu [N,C,1].
struct ChunkTokens {
  at::Tensor q, k, v, gamma, mu;

  template <class Function>
  ChunkTokens Map(const Function& f) const {
    return {f(q), f(k), f(v), f(gamma), f(mu)};
  }
};

struct ChunkTerms {
  at::Tensor G, W, R;  // [N,C,M]; R is linear1's weight of S', and already in G for linear2
  at::Tensor H;        // [N,C,D]
  at::Tensor added;    // [N,C,M]: what a token adds to |S_i|^2 under normalize none or chunk
};

// sqrt(|S_i|^2 + eps^2): [...,M] of S [...,M,D].
at::Tensor SlotLengths(const at::Tensor& S);

// Everything frozen at the chunk's start: the paper's approximations.
ChunkTerms FrozenTerms(const ChunkForm& form, const ChunkTokens& x, const at::Tensor& S);

// One sweep: every token sees the state that the terms `last` give before it.
ChunkTerms NextTerms(const ChunkForm& form, const ChunkTokens& x, const at::Tensor& S,
                     const ChunkTerms& last);

// The squared lengths [N,M] that the exact recurrence would have at the chunk's end, as far as the terms
// know.
at::Tensor ExpectedSquares(const ChunkForm& form, const ChunkTokens& x, const at::Tensor& S,
                           const ChunkTerms& terms);

// y [N,C,D] and the state behind the chunk, before any normalisation of it.
std::pair<at::Tensor, at::Tensor> ApplyTerms(const ChunkForm& form, const ChunkTokens& x, const at::Tensor& S,
                                             const ChunkTerms& terms);

}  // namespace lattice

#endif  // LATTICE_OPS_CHUNK_TERMS_H_
