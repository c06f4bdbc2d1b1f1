// Walks the chunks of all sequences from first to last (ops/refine.h computes one), and back: a chunk's gradients come
// from computing it again from its checkpoint with autograd on.
#include "ops/chunk_matrix.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <bit>

#include "ops/refine.h"

namespace lattice {
namespace {

using at::Tensor;

// Tokens [begin, begin + length) of batch row `batch` (all rows when negative); `row` is where its states
// are.
struct Span {
  int64_t batch, begin, length, row;
};

std::vector<Span> SpansOf(const Inputs& in) {
  const int64_t T = in.q.size(1);
  if (!in.cu_seqlens.has_value()) return {{-1, 0, T, 0}};
  const std::vector<int64_t> at = SequenceStarts("[scan]", *in.cu_seqlens, T);
  std::vector<Span> spans;
  for (int64_t n = 0; n + 1 < static_cast<int64_t>(at.size()); ++n) {
    const auto i = static_cast<size_t>(n);
    spans.push_back({0, at[i], at[i + 1] - at[i], n});
  }
  return spans;
}

// [B,T,H,*] or gates [B,T,H] as [B*H,length,*].
Tensor Heads(const Tensor& x, int64_t begin, int64_t length) {
  const Tensor part = x.narrow(1, begin, length).transpose(1, 2);
  return (part.dim() == 3 ? part.unsqueeze(-1) : part).flatten(0, 1);
}

Tensor StatesOf(const Span& span, const Tensor& state) {
  return (span.batch < 0 ? state : state.narrow(0, span.row, 1)).flatten(0, 1);
}

ChunkTokens TokensOf(const Inputs& in, int64_t begin, int64_t length) {
  const Tensor gamma = Heads(*in.gates[kernels::kGammaGate], begin, length);
  const OptionalTensor& mu = in.gates[kernels::kMuGate];
  return {Heads(in.q, begin, length), Heads(in.k, begin, length), Heads(in.v, begin, length), gamma,
          mu.has_value() ? Heads(*mu, begin, length) : at::ones_like(gamma)};
}

// Whole powers of two: added tokens have no key, no value, gamma 0 and mu 1, and change nothing.
ChunkTokens Padded(const ChunkTokens& x) {
  const int64_t C = x.k.size(-2), missing = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(C))) - C;
  if (missing == 0) return x;
  const auto pad = [&](const Tensor& t, double fill) {
    return at::constant_pad_nd(t, {0, 0, 0, missing}, fill);
  };
  return {pad(x.q, 0), pad(x.k, 0), pad(x.v, 0), pad(x.gamma, 0), pad(x.mu, 1)};
}

// y [N,C,D] and the state the next chunk starts from.
std::pair<Tensor, Tensor> RunChunk(const ChunkForm& form, const ChunkTokens& tokens, const Tensor& S) {
  const ChunkTokens x = Padded(tokens);
  auto [y, end] = form.Refined() ? RefineChunk(form, x, S) : ApplyTerms(form, x, S, FrozenTerms(form, x, S));
  if (form.normalize == kernels::Normalize::kChunk)
    end = end * (SlotLengths(S) / SlotLengths(end)).unsqueeze(-1);
  return {y.narrow(-2, 0, tokens.k.size(-2)), end};
}

Tensor Unflattened(const Tensor& x, int64_t heads) { return x.unflatten(0, {-1, heads}); }

}  // namespace

c10::SymInt ChunkMatrixCheckpoints(const ChunkForm& form, c10::SymInt B, c10::SymInt T, bool packed) {
  return packed ? T / form.chunk : B * ((T - 1) / form.chunk);
}

std::tuple<Tensor, Tensor, Tensor> ChunkMatrixForward(const ChunkForm& form, const Inputs& in, bool keep) {
  const int64_t H = in.q.size(2);
  std::vector<Tensor> ys, ends, checkpoints;
  for (const Span& span : SpansOf(in)) {
    Tensor S = StatesOf(span, in.state);
    for (int64_t first = 0; first < span.length; first += form.chunk) {
      if (keep && first > 0) checkpoints.push_back(Unflattened(S, H));
      const int64_t length = std::min(form.chunk, span.length - first);
      auto [y, end] = RunChunk(form, TokensOf(in, span.begin + first, length), S);
      ys.push_back(Unflattened(y, H));
      S = end;
    }
    ends.push_back(Unflattened(S, H));
  }
  const bool packed = in.cu_seqlens.has_value();
  const int64_t room =
      keep ? ChunkMatrixCheckpoints(form, in.q.size(0), in.q.size(1), packed).expect_int() : int64_t{0};
  auto sizes = in.state.sizes().vec();
  sizes[0] = room;
  Tensor states = at::empty(sizes, in.state.options());
  if (!checkpoints.empty()) {
    const Tensor all = at::cat(checkpoints, 0);
    states.narrow(0, 0, all.size(0)).copy_(all);
  }
  return {at::cat(ys, 2).transpose(1, 2).contiguous(), at::cat(ends, 0).contiguous(), states};
}

namespace {

// The gradients of one chunk: recomputed with autograd on. `grads` are those of y [N,C,D] and of the state.
struct GradsOfChunk {
  ChunkTokens tokens;
  Tensor state;
};

GradsOfChunk BackwardChunk(const ChunkForm& form, const ChunkTokens& tokens, const Tensor& S,
                           const Tensor& dy, const Tensor& dS) {
  at::AutoGradMode on(true);
  const auto leaf = [](const Tensor& x) { return x.detach().requires_grad_(); };
  const ChunkTokens x = tokens.Map(leaf);
  const Tensor start = leaf(S);
  const auto [y, end] = RunChunk(form, x, start);
  const auto grads = torch::autograd::grad({y, end}, {x.q, x.k, x.v, x.gamma, x.mu, start}, {dy, dS},
                                           /*retain_graph=*/false, /*create_graph=*/false,
                                           /*allow_unused=*/true);
  const auto found = [&](size_t i, const Tensor& like) {
    return grads[i].defined() ? grads[i] : at::zeros_like(like);
  };
  return {{found(0, x.q), found(1, x.k), found(2, x.v), found(3, x.gamma), found(4, x.mu)}, found(5, start)};
}

}  // namespace

std::vector<Tensor> ChunkMatrixBackward(const ChunkForm& form, const Inputs& in, const Tensor& checkpoints,
                                        const Tensor& dy, const OptionalTensor& dstate_out) {
  const int64_t H = in.q.size(2), rows = in.cu_seqlens.has_value() ? 1 : in.q.size(0);
  const auto like = [](const Tensor& x) { return at::empty(x.sizes(), x.options()); };
  const OptionalTensor& mu = in.gates[kernels::kMuGate];
  std::vector<Tensor> out{like(in.q),
                          like(in.k),
                          like(in.v),
                          like(*in.gates[kernels::kGammaGate]),
                          mu.has_value() ? like(*mu) : Tensor(),
                          like(in.state)};
  int64_t next = 0;  // of the checkpoints
  for (const Span& span : SpansOf(in)) {
    const int64_t chunks = (span.length + form.chunk - 1) / form.chunk;
    Tensor dS =
        dstate_out.has_value() ? StatesOf(span, *dstate_out) : at::zeros_like(StatesOf(span, in.state));
    for (int64_t n = chunks - 1; n >= 0; --n) {
      const int64_t begin = span.begin + n * form.chunk;
      const int64_t length = std::min(form.chunk, span.length - n * form.chunk);
      const Tensor S = n == 0 ? StatesOf(span, in.state)
                              : checkpoints.narrow(0, next + (n - 1) * rows, rows).flatten(0, 1);
      const GradsOfChunk grads =
          BackwardChunk(form, TokensOf(in, begin, length), S, Heads(dy, begin, length), dS);
      const auto put = [&](Tensor& to, const Tensor& from) {
        const Tensor part = Unflattened(from, H).transpose(1, 2);
        to.narrow(1, begin, length).copy_(to.dim() == 3 ? part.squeeze(-1) : part);
      };
      put(out[0], grads.tokens.q);
      put(out[1], grads.tokens.k);
      put(out[2], grads.tokens.v);
      put(out[3], grads.tokens.gamma);
      if (mu.has_value()) put(out[4], grads.tokens.mu);
      dS = grads.state;
    }
    const Tensor d = Unflattened(dS, H);
    (span.batch < 0 ? out[5] : out[5].narrow(0, span.row, 1)).copy_(d);
    next += std::max<int64_t>(0, chunks - 1) * rows;
  }
  return out;
}

}  // namespace lattice
