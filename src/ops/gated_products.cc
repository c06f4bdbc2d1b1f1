#include "ops/gated_products.h"

#include <ATen/ATen.h>

#include <utility>

namespace lattice {
namespace {

using at::Tensor;

// The two halves of every pair of neighbouring blocks of `block` tokens: x [...,C,*] as 2 x
// [...,C/2block,block,*].
std::pair<Tensor, Tensor> Halves(const Tensor& x, int64_t block) {
  const Tensor pairs = x.unflatten(-2, {-1, 2, block});
  return {pairs.select(-3, 0), pairs.select(-3, 1)};
}

Tensor Join(const Tensor& left, const Tensor& right) { return at::cat({left, right}, -2).flatten(-3, -2); }

// [L 0; cross R] for every pair of triangles L, R in scores [...,C/block,block,block].
Tensor Grow(const Tensor& scores, const Tensor& cross) {
  const Tensor pairs = scores.unflatten(-3, {-1, 2});
  const Tensor left = pairs.select(-3, 0), right = pairs.select(-3, 1);
  return at::cat({at::cat({left, at::zeros_like(left)}, -1), at::cat({cross, right}, -1)}, -2);
}

// The weights of right halves (rows) for left halves (columns): [...,C/2block,block,block].
Tensor CrossWeights(const Tensor& weights, int64_t block) {
  const Tensor left = weights.unflatten(-1, {-1, 2, block}).select(-2, 0);
  const Tensor right = left.unflatten(-3, {-1, 2, block}).select(-4, 1);
  return right.diagonal(0, -4, -2).movedim(-1, -3);
}

}  // namespace

int64_t PlainSize(const Tensor& x, int64_t dim) { return x.sym_size(dim).guard_int(__FILE__, __LINE__); }

GateProducts MultiplyGates(const Tensor& gate) {
  GateProducts products{{{gate, at::ones_like(gate)}}};
  for (int64_t block = 1, C = PlainSize(gate, -2); block < C; block *= 2) {
    const auto [prefix, suffix] = products.levels.back();
    const auto [P_left, P_right] = Halves(prefix, block);
    const auto [X_left, X_right] = Halves(suffix, block);
    products.levels.push_back({Join(P_left, P_right * P_left.narrow(-2, block - 1, 1)),
                               Join(X_left * P_right.narrow(-2, block - 1, 1), X_right)});
  }
  return products;
}

Tensor GatedScores(const Tensor& q, const Tensor& k, const GateProducts& gates) {
  const bool outer = PlainSize(q, -1) == 1;
  Tensor scores = (q * k).sum(-1).unsqueeze(-1).unsqueeze(-1);
  int64_t block = 1;
  for (size_t i = 0; i + 1 < gates.levels.size(); ++i, block *= 2) {
    const Tensor queries = Halves(q, block).second * Halves(gates.levels[i].prefix, block).second;
    const Tensor keys = Halves(k, block).first * Halves(gates.levels[i].suffix, block).first;
    const Tensor across = keys.transpose(-2, -1);
    scores = Grow(scores, outer ? queries * across : at::matmul(queries, across));
  }
  return scores.squeeze(-3);
}

Tensor GatedSum(const Tensor& weights, const Tensor& x, const GateProducts& gates) {
  Tensor sums = weights.diagonal(0, -2, -1).unsqueeze(-1) * x;
  int64_t block = 1;
  for (size_t i = 0; i + 1 < gates.levels.size(); ++i, block *= 2) {
    const Tensor seen = Halves(x, block).first * Halves(gates.levels[i].suffix, block).first;
    const auto [left, right] = Halves(sums, block);
    const Tensor from_left = at::matmul(CrossWeights(weights, block), seen);
    sums = Join(left, right + Halves(gates.levels[i].prefix, block).second * from_left);
  }
  return sums;
}

}  // namespace lattice
