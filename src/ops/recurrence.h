// Torch operators over the kernels: the exact Lattice recurrence and the other memories, differentiable.
//
// Tensors: q, k [B,T,H,M]; v, y [B,T,H,D]; gates [B,T,H], a per-slot mu [B,T,H,M]; state [B,H,M,D].
// float32 or float64; q, k, v and gates may be bfloat16 beside a float32 state, then y is bfloat16.
// With cu_seqlens (int64 [N+1], from 0 to T) B is 1 and N sequences lie one after the other; state is
// [N,H,M,D]. Any strides work. Gradients flow to every tensor, the initial state included, and from the final
// state; once (no second derivatives). Threads: at::parallel_for over heads; results do not depend on how
// many. Wrong arguments throw c10::Error before anything is computed.
#ifndef LATTICE_OPS_RECURRENCE_H_
#define LATTICE_OPS_RECURRENCE_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/export.h"
#include "kernels/memory.h"

namespace lattice {

struct ScanOptions {
  std::string objective = "dec";    // dec, enc or sim
  std::string normalize = "token";  // token or none; chunk with a chunk method
  std::optional<at::Tensor> mu;     // forget gate, off when absent
  std::optional<at::Tensor> lam;    // l1 shrinkage by gamma * lam, [B,T,H]; exact only
  std::optional<at::Tensor> cu_seqlens;
  // The recurrence itself, or one of its chunk forms (docs/exact-or-chunked.md).
  std::string method = "exact";     // exact, linear1 or linear2
  int64_t chunk = 1;                // tokens a chunk form takes at once
  int64_t sweeps = 1;               // more than one refines linear2
  std::optional<double> tolerance;  // sweep until a sweep changes no slot by more, `sweeps` times at most
};

// The Lattice layer (docs/recurrence.md). Returns y and the final state.
LATTICE_EXPORT std::tuple<at::Tensor, at::Tensor> Scan(const at::Tensor& q, const at::Tensor& k,
                                                       const at::Tensor& v, const at::Tensor& gamma,
                                                       const at::Tensor& state,
                                                       const ScanOptions& options = {});

struct RecurOptions {
  std::optional<at::Tensor> gamma, mu, igate, fgate;
  std::optional<at::Tensor> state;  // zeros when absent
  std::optional<at::Tensor> cu_seqlens;
};

// Any memory of kernels::Memories() by name. The state of a memory that keeps numbers beside its matrix is
// flat: mlstm's is [B,H,M*D+M+1], S, n and m one after the other.
LATTICE_EXPORT std::tuple<at::Tensor, at::Tensor> Recur(const std::string& rule, const at::Tensor& q,
                                                        const at::Tensor& k, const at::Tensor& v,
                                                        const RecurOptions& options = {});

// The same with any gates, in the order of the memory's description.
LATTICE_EXPORT std::tuple<at::Tensor, at::Tensor> RecurWith(
    const kernels::Memory& memory, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const std::vector<std::optional<at::Tensor>>& gates, const std::optional<at::Tensor>& state = {},
    const std::optional<at::Tensor>& cu_seqlens = {});

// Causal softmax attention, scale M^-1/2, after the cached keys and values [B,P,G,*] if given. Keys and values may
// have fewer heads G than the queries have, H: each is then shared by H / G heads in a row. Where keep (bool
// [B,P+T]) is false stands padding, which no other token sees.
// Returns y and the caches with this call's keys and values appended.
LATTICE_EXPORT std::tuple<at::Tensor, at::Tensor, at::Tensor> Attention(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const std::optional<at::Tensor>& past_k = {}, const std::optional<at::Tensor>& past_v = {},
    const std::optional<at::Tensor>& cu_seqlens = {}, const std::optional<at::Tensor>& keep = {});

}  // namespace lattice

#endif  // LATTICE_OPS_RECURRENCE_H_
