// Which tokens a window with sinks sees, and when a token leaves it, by position.
//
// Token p sees the tokens 0 .. S-1 (the sinks) and p-W+1 .. p. A token at or behind S leaves the window when the
// token W places later comes: then it enters the memory beside the window, if there is one.
#ifndef LATTICE_NN_WINDOW_H_
#define LATTICE_NN_WINDOW_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lattice::nn {

struct Window {
  int64_t size = 0, sinks = 0;  // W, S

  // Positions of the tokens that a cache holds before token `position`, int64 [P]: what that token will see but
  // itself, and what it makes leave.
  at::Tensor Cached(int64_t position) const;
  // Which of the keys at positions key [K] the queries at positions query [T] see: bool [T,K]; or of
  // several blocks of both, [N,T] and [N,K]: [N,T,K].
  at::Tensor Seen(const at::Tensor& query, const at::Tensor& key) const;

  // Tokens with keys and values at ascending positions, [P] and [B,P,heads,D].
  struct Held {
    at::Tensor positions, keys, values;
  };
  // Attention of the queries q [B,T,H,D] at the consecutive positions query [T] over what they see of `held`, whose
  // heads divide H: [B,T,H,D]. Long sequences are computed block by block, so that the cost is that of the window and
  // not of the sequence.
  at::Tensor Attend(const at::Tensor& q, const at::Tensor& query, const Held& held) const;
};

// For every position in `wanted` its place in `held`, ascending positions, and whether it is there.
struct Places {
  at::Tensor index;  // int64, 0 where it is not there
  at::Tensor found;  // bool
};
Places Find(const at::Tensor& wanted, const at::Tensor& held);

}  // namespace lattice::nn

#endif  // LATTICE_NN_WINDOW_H_
