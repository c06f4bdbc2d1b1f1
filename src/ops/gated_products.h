// Sums over the tokens of a chunk, weighted by products of gates.
//
// A gate G [...,C,X] has one number a token (X = 1) or one a slot (X = M); C is a power of two. With
//   Omega[t,j] = G_{j+1} .. G_t  for j <= t, else 0,
// the functions below never divide and take no logarithm: gates may be zero, tiny, one, larger or negative.
// Blocks of 1, 2, 4, ... tokens are joined pairwise: a token of the right half sees one of the left half
// through the product to the left half's end and the product from the right half's start. ATen operators
// alone: any device, differentiable by autograd.
#ifndef LATTICE_OPS_GATED_PRODUCTS_H_
#define LATTICE_OPS_GATED_PRODUCTS_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace lattice {

struct GateProducts {
  // Of blocks of 2^i tokens at index i: products from the block's start to a token, that token's gate
  // included, and from behind it to the block's end. Both [...,C,X].
  struct Level {
    at::Tensor prefix, suffix;
  };
  std::vector<Level> levels;

  const at::Tensor& FromStart() const { return levels.back().prefix; }
  const at::Tensor& ToEnd() const { return levels.back().suffix; }
};

GateProducts MultiplyGates(const at::Tensor& gate);

// [...,C,C]: sum_m q_tm k_jm Omega[t,j,m], zero above the diagonal. q and k have the gates' last dimension.
at::Tensor GatedScores(const at::Tensor& q, const at::Tensor& k, const GateProducts& gates);

// [...,C,X]: sum_{j<=t} weights_tj Omega[t,j] x_j with weights [...,C,C]; what stands above their diagonal is
// not read.
at::Tensor GatedSum(const at::Tensor& weights, const at::Tensor& x, const GateProducts& gates);

// A size as a plain number; under torch.compile with dynamic shapes it becomes a guard.
int64_t PlainSize(const at::Tensor& x, int64_t dim);

}  // namespace lattice

#endif  // LATTICE_OPS_GATED_PRODUCTS_H_
