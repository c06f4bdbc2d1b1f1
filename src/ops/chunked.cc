// One chunk that starts from the state S', with G_t the gate of token t (one number, or one per slot),
//   Omega[t,j] = G_{j+1} .. G_t (t >= j),  P_t = G_1 .. G_t,  X_t = G_{t+1} .. G_C:
//   S_t = P_t S' + sum_{j<=t} Omega[t,j] k_j u_j^T      Y = (Q*P) S' + tril(Q K^T * Omega) U
// u_t is what token t writes. For linear_attention, mamba2 and gla it is v_t. For the delta rules it is
// gamma_t (v_t - k_t @ (G_t S_{t-1})), which refers to the earlier tokens of the chunk; collected,
//   (I + diag(gamma) stril(K K^T * Omega)) U = diag(gamma) (V - (K*P) S'),
// a unit triangular system, solved once for V and for K*P: U = U_v - U_k S'.
#include "ops/chunked.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <bit>

#include "kernels/registry.h"
#include "ops/gated_products.h"
#include "ops/inputs.h"

namespace lattice {
namespace {

using at::Tensor;

// What one chunked rule needs, all [B,H,N,C,*]: N chunks of C tokens, C padded to a power of two.
struct Chunks {
  Tensor q, k, v;
  Tensor gate;   // [...,1] or [...,M]; undefined without a forget gate
  Tensor gamma;  // [...,1]; undefined unless the rule is a delta rule
};

// The lower triangle sum_m q_im k_jm Omega[i,j,m], the products P from the chunk's start and X to its end.
struct Weights {
  Tensor scores;          // [...,C,C]
  Tensor prefix, suffix;  // [...,C,*]; undefined without a forget gate
  Tensor links;           // sum_m k_im k_jm Omega[i,j] for the delta rules
};

Tensor Gram(const Tensor& x, const Tensor& y) { return at::matmul(x, y.transpose(-2, -1)); }

Weights MakeWeights(const Chunks& c) {
  const bool delta = c.gamma.defined();
  if (!c.gate.defined()) return {Gram(c.q, c.k).tril(), {}, {}, delta ? Gram(c.k, c.k) : Tensor()};
  const GateProducts gates = MultiplyGates(c.gate);
  Weights w{{}, gates.FromStart(), gates.ToEnd(), {}};
  if (PlainSize(c.gate, -1) != 1) {
    w.scores = GatedScores(c.q, c.k, gates);
    return w;
  }
  const Tensor ones = at::ones_like(c.gate);
  w.scores = GatedScores(ones, ones, gates);  // Omega itself
  if (delta) w.links = Gram(c.k, c.k) * w.scores;
  w.scores = Gram(c.q, c.k) * w.scores;
  return w;
}

// U_v and U_k of the delta rules.
std::pair<Tensor, Tensor> SolveWrites(const Chunks& c, const Weights& w) {
  const Tensor reads = w.prefix.defined() ? c.k * w.prefix : c.k;
  const Tensor sides = c.gamma * at::cat({c.v, reads}, -1);
  const Tensor solved = at::linalg_solve_triangular((c.gamma * w.links).tril(-1), sides, /*upper=*/false,
                                                    /*left=*/true, /*unitriangular=*/true);
  const int64_t D = PlainSize(c.v, -1), M = PlainSize(c.k, -1);
  return {solved.narrow(-1, 0, D), solved.narrow(-1, D, M)};
}

// Y [B,H,N,C,D] and the state after the last chunk.
std::pair<Tensor, Tensor> RunChunks(const Chunks& c, Tensor state) {
  const Weights w = MakeWeights(c);
  const bool gated = w.prefix.defined();
  const Tensor queries = gated ? c.q * w.prefix : c.q;
  const Tensor keys = (gated ? c.k * w.suffix : c.k).transpose(-2, -1);
  const Tensor decay = gated ? w.prefix.select(-2, PlainSize(c.q, -2) - 1).unsqueeze(-1) : Tensor();
  const bool delta = c.gamma.defined();
  const auto [U_v, U_k] = delta ? SolveWrites(c, w) : std::pair(c.v, Tensor());
  const Tensor written = delta ? Tensor() : at::matmul(keys, c.v);

  std::vector<Tensor> states, writes;
  for (int64_t n = 0; n < PlainSize(c.q, 2); ++n) {
    states.push_back(state);
    Tensor increment;
    if (delta) {
      writes.push_back(U_v.select(2, n) - at::matmul(U_k.select(2, n), state));
      increment = at::matmul(keys.select(2, n), writes.back());
    } else {
      increment = written.select(2, n);
    }
    state = (gated ? decay.select(2, n) * state : state) + increment;
  }
  const Tensor U = delta ? at::stack(writes, 2) : c.v;
  return {at::matmul(w.scores, U) + at::matmul(queries, at::stack(states, 2)), state};
}

// [B,T,H,X] as [B,H,N,C,X]. Tokens that are added hold `fill`: zero keys and gates of one change nothing.
Tensor Split(const Tensor& x, int64_t N, int64_t chunk, double fill) {
  const int64_t padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(chunk)));
  const int64_t missing = N * chunk - PlainSize(x, 1);
  const Tensor whole = missing == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, 0, 0, missing}, fill);
  const Tensor parts = whole.unflatten(1, {N, chunk}).permute({0, 3, 1, 2, 4});
  if (padded == chunk) return parts.contiguous();
  return at::constant_pad_nd(parts, {0, 0, 0, padded - chunk}, fill);
}

std::tuple<Tensor, Tensor> RunSequence(const kernels::Memory& memory, const Inputs& in, int64_t chunk) {
  const int64_t T = PlainSize(in.q, 1), N = (T + chunk - 1) / chunk;
  const auto wide = [&](const Tensor& x) { return x.to(in.state.scalar_type()); };
  Chunks c{
      Split(wide(in.q), N, chunk, 0), Split(wide(in.k), N, chunk, 0), Split(wide(in.v), N, chunk, 0), {}, {}};
  const auto gate = [&](kernels::GateRole role) {
    const int place = memory.FindGate(role);
    return place < 0 ? OptionalTensor() : in.gates[static_cast<size_t>(place)];
  };
  if (const OptionalTensor mu = gate(kernels::GateRole::kForget)) {
    c.gate = Split(wide(mu->dim() == 4 ? *mu : mu->unsqueeze(-1)), N, chunk, 1);
  }
  if (const OptionalTensor gamma = gate(kernels::GateRole::kWrite)) {
    c.gamma = Split(wide(gamma->unsqueeze(-1)), N, chunk, 0);
  }
  const auto [y, state] = RunChunks(c, in.state);
  const Tensor rows = y.narrow(3, 0, chunk).permute({0, 2, 3, 1, 4}).flatten(1, 2).narrow(1, 0, T);
  return {rows.to(in.q.scalar_type()), state};
}

std::tuple<Tensor, Tensor> ChunkedOp(const std::string& rule, const Tensor& q, const Tensor& k,
                                     const Tensor& v, const OptionalTensor& gamma, const OptionalTensor& mu,
                                     const OptionalTensor& state, int64_t chunk) {
  const std::vector<std::string> rules = ChunkedRules();
  TORCH_CHECK_VALUE(std::find(rules.begin(), rules.end(), rule) != rules.end(), "[recur] '", rule,
                    "' has no chunk form; the rules that have one are: ", c10::Join(", ", rules),
                    "; the others run token by token (method 'exact')");
  const kernels::Memory& memory = MemoryNamed(rule);
  TORCH_CHECK_VALUE(chunk >= 1, "[recur] chunk is ", chunk, "; it must be at least 1 token");
  TORCH_CHECK_VALUE(q.dim() == 4 && v.dim() == 4, "[recur] q and v must have 4 dimensions [B,T,H,*], got ",
                    q.sizes(), " and ", v.sizes());
  const at::ScalarType type = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto zeros = [&] {
    return at::zeros({PlainSize(q, 0), PlainSize(q, 2), PlainSize(q, 3), PlainSize(v, 3)},
                     q.options().dtype(type));
  };
  const Inputs in{q,
                  k,
                  v,
                  GatesByName(memory, {{"gamma", gamma}, {"mu", mu}}),
                  state.has_value() ? *state : zeros(),
                  std::nullopt};
  CheckTypes(memory, in);
  CheckShapes(memory, in);
  return RunSequence(memory, in, std::min(chunk, PlainSize(q, 1)));
}

}  // namespace

std::vector<std::string> ChunkedRules() {
  std::vector<std::string> rules;
  for (const kernels::Memory& memory : kernels::Memories()) {
    if (memory.chunk_form) rules.push_back(memory.RecurName());
  }
  return rules;
}

std::tuple<Tensor, Tensor> RecurChunked(const std::string& rule, const Tensor& q, const Tensor& k,
                                        const Tensor& v, const RecurOptions& options, int64_t chunk) {
  TORCH_CHECK_VALUE(
      !options.igate.has_value() && !options.fgate.has_value() && !options.cu_seqlens.has_value(),
      "[recur] the chunk form takes gamma, mu and state; igate, fgate and cu_seqlens must be absent");
  return ChunkedOp(rule, q, k, v, options.gamma, options.mu, options.state, chunk);
}

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def(
      "recur_chunked(str rule, Tensor q, Tensor k, Tensor v, Tensor? gamma=None, Tensor? mu=None, "
      "Tensor? state=None, int chunk=64) -> (Tensor y, Tensor state_out)",
      ChunkedOp);
  m.def("chunked_rules() -> str[]", [] { return ChunkedRules(); });
}

}  // namespace lattice
