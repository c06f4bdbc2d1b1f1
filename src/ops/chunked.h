// The chunk-parallel matrix form of the linear memories: the usual way to train them on accelerators.
//
// Inside a chunk of C tokens the recurrence is written as products of matrices; only the states at the
// chunks' starts follow one another. The result equals Recur of ops/recurrence.h up to rounding. Built from
// ATen operators alone, so it runs on every device torch has and autograd gives its derivatives (of any
// order). Gate products are never divided and no logarithm is taken: gates may be zero, tiny, one or
// negative. A NaN or infinity spreads to the earlier tokens of its chunk (a masked weight of zero times NaN
// is NaN), which the exact recurrence would not do.
#ifndef LATTICE_OPS_CHUNKED_H_
#define LATTICE_OPS_CHUNKED_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "ops/recurrence.h"

namespace lattice {

// The rules that have a chunk form.
LATTICE_EXPORT std::vector<std::string> ChunkedRules();

// Arguments and results as Recur's; no cu_seqlens. chunk >= 1; any T, the last chunk may be shorter.
// Throws c10::Error for a rule without a chunk form, naming those that have one.
LATTICE_EXPORT std::tuple<at::Tensor, at::Tensor> RecurChunked(const std::string& rule, const at::Tensor& q,
                                                               const at::Tensor& k, const at::Tensor& v,
                                                               const RecurOptions& options = {},
                                                               int64_t chunk = 64);

}  // namespace lattice

#endif  // LATTICE_OPS_CHUNKED_H_
