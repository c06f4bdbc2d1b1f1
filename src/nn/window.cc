#include "nn/window.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace lattice::nn {

at::Tensor Window::Cached(int64_t position) const {
  const int64_t first = std::max(sinks, position - size);
  return at::cat({at::arange(0, std::min(sinks, position), at::kLong),
                  at::arange(first, std::max(first, position), at::kLong)});
}

at::Tensor Window::Seen(const at::Tensor& query, const at::Tensor& key) const {
  const at::Tensor q = query.unsqueeze(1), k = key.unsqueeze(0);
  return (k <= q).logical_and((k > q - size).logical_or(k < sinks));
}

Places Find(const at::Tensor& wanted, const at::Tensor& held) {
  const at::Tensor at = at::searchsorted(held, wanted).clamp_max(held.size(0) - 1);
  const at::Tensor found = held.index_select(0, at) == wanted;
  return {at.masked_fill(found.logical_not(), 0), found};
}

}  // namespace lattice::nn
