#include "ops/chunk_terms.h"

#include <ATen/ATen.h>

#include "ops/gated_products.h"

namespace lattice {
namespace {

using at::Tensor;
using kernels::Objective;

constexpr double kEps = 1e-6;

Tensor Transposed(const Tensor& x) { return x.transpose(-2, -1); }

// The terms of every token from the lengths s [N,C or 1,M] of the slots before it, its target H and the dots
// <S_i, H_t>.
ChunkTerms FinishTerms(const ChunkForm& form, const ChunkTokens& x, const Tensor& s, const Tensor& H,
                       const Tensor& dots) {
  const Tensor a = dots / s;
  const Tensor ch = (form.objective == Objective::kEnc ? a - x.k : x.k) / s;
  const Tensor added =
      x.gamma.square() * (ch.square() * (H.square().sum(-1, true) - a.square())).clamp_min(0);
  const Tensor ms = x.mu * s;
  Tensor G = x.mu.expand_as(x.k), W = x.gamma * ch;
  if (form.normalize == kernels::Normalize::kToken) {
    const Tensor beta = s / (ms.square() + added).sqrt();
    G = x.mu * beta;
    W = W * beta;
  }
  const Tensor R = W * a / s;
  return {form.linear1 ? G : G + R, W, R, H, added};
}

// Row t of the result is row t - 1 of x; the first is `fill`.
Tensor Later(const Tensor& x, double fill) {
  return at::cat({at::full_like(x.narrow(-2, 0, 1), fill), x.narrow(-2, 0, x.size(-2) - 1)}, -2);
}

// |S_i|^2 + eps^2 before every token, [N,C,M], when nothing is normalised inside the chunk: a token
// multiplies it by mu^2 and adds to it, because what it writes is orthogonal to the slot.
Tensor SquaresBefore(const ChunkTokens& x, const Tensor& S, const ChunkTerms& last) {
  const GateProducts gates = MultiplyGates(Later(x.mu, 1).square());
  const Tensor ones = at::ones_like(x.mu);
  const Tensor start = SlotLengths(S).square().unsqueeze(-2);
  return gates.FromStart() * start + at::matmul(GatedScores(ones, ones, gates), Later(last.added, 0));
}

}  // namespace

Tensor SlotLengths(const Tensor& S) { return (S.square().sum(-1) + kEps * kEps).sqrt(); }

ChunkTerms FrozenTerms(const ChunkForm& form, const ChunkTokens& x, const Tensor& S) {
  const Tensor s = SlotLengths(S).unsqueeze(-2);
  const Tensor H = form.objective == Objective::kDec   ? at::matmul(x.k / s, S) - x.v
                   : form.objective == Objective::kEnc ? x.v
                                                       : -x.v;
  return FinishTerms(form, x, s, H, at::matmul(H, Transposed(S)));
}

// The state before token t is what `last` makes of S' up to token t - 1: its terms moved on by a token.
ChunkTerms NextTerms(const ChunkForm& form, const ChunkTokens& x, const Tensor& S, const ChunkTerms& last) {
  const Tensor W = Later(last.W, 0), written = Later(last.H, 0);
  const GateProducts gates = MultiplyGates(Later(last.G, 1));
  const Tensor s = form.normalize == kernels::Normalize::kToken ? SlotLengths(S).unsqueeze(-2)
                                                                : SquaresBefore(x, S, last).sqrt();
  Tensor H = form.objective == Objective::kEnc ? x.v : -x.v;
  if (form.objective == Objective::kDec) {
    const Tensor reads = x.k / s;
    H = H + at::matmul(reads * gates.FromStart(), S) - at::matmul(GatedScores(reads, W, gates), written);
  }
  const Tensor dots = gates.FromStart() * at::matmul(H, Transposed(S)) -
                      GatedSum(at::matmul(H, Transposed(written)), W, gates);
  return FinishTerms(form, x, s, H, dots);
}

Tensor ExpectedSquares(const ChunkForm& form, const ChunkTokens& x, const Tensor& S,
                       const ChunkTerms& terms) {
  if (form.normalize == kernels::Normalize::kToken) return SlotLengths(S).square();
  const int64_t end = x.k.size(-2) - 1;
  const Tensor before = SquaresBefore(x, S, terms).select(-2, end);
  return x.mu.select(-2, end).square() * before + terms.added.select(-2, end);
}

std::pair<Tensor, Tensor> ApplyTerms(const ChunkForm& form, const ChunkTokens& x, const Tensor& S,
                                     const ChunkTerms& terms) {
  const GateProducts gates = MultiplyGates(terms.G);
  Tensor share = gates.FromStart();  // of S' in X_t
  if (form.linear1) {
    const int64_t C = x.k.size(-2);
    share = share + GatedSum(at::ones({C, C}, S.options()).expand({S.size(0), C, C}), terms.R, gates);
  }
  const Tensor y = at::matmul(x.q * share, S) - at::matmul(GatedScores(x.q, terms.W, gates), terms.H);
  const Tensor end = share.select(-2, share.size(-2) - 1).unsqueeze(-1);
  return {y, end * S - at::matmul(Transposed(terms.W * gates.ToEnd()), terms.H)};
}

}  // namespace lattice
