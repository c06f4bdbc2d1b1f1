#include "nn/window.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace lattice::nn {
namespace {

// Queries that are computed together: fewer cost calls, more cost products that are masked.
constexpr int64_t kBlock = 64;

// q [B,T,H,D], keys and values [B,P,heads,D], seen bool, broadcast to [B,H,T,P].
at::Tensor Masked(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                  const at::Tensor& seen) {
  const auto heads = [&](const at::Tensor& x) {
    const int64_t group = q.size(2) / x.size(2);
    return (group == 1 ? x : at::repeat_interleave(x, group, 2)).transpose(1, 2);
  };
  return at::scaled_dot_product_attention(q.transpose(1, 2), heads(keys), heads(values), seen)
      .transpose(1, 2);
}

}  // namespace

at::Tensor Window::Attend(const at::Tensor& q, const at::Tensor& query, const Held& held) const {
  const int64_t batch = q.size(0), length = q.size(1), block = std::max(kBlock, size);
  if (length < 2 * block) return Masked(q, held.keys, held.values, Seen(query, held.positions));
  const int64_t blocks = (length + block - 1) / block, span = sinks + block + size - 1;
  // Behind the end the last query is repeated.
  const at::Tensor rows = at::arange(blocks * block).clamp_max(length - 1);
  const at::Tensor asking = query.index_select(0, rows).view({blocks, block});
  // The sinks, then all that the window of any query of the block holds.
  const at::Tensor near = asking.narrow(1, 0, 1) + at::arange(1 - size, block, at::kLong).unsqueeze(0);
  const at::Tensor wanted = at::cat({at::arange(sinks, at::kLong).expand({blocks, sinks}), near}, 1);
  const Places places = Find(wanted.flatten(), held.positions);
  // A sink that is near as well counts once.
  const at::Tensor once = (wanted >= sinks).logical_or(at::arange(span) < sinks);
  const at::Tensor usable = places.found.view({blocks, span}).logical_and(once).unsqueeze(1);
  const at::Tensor seen = Seen(asking, wanted).logical_and(usable);
  const auto cut = [&](const at::Tensor& x, const at::Tensor& index, int64_t count) {
    return x.index_select(1, index).view({batch * blocks, count, x.size(2), x.size(3)});
  };
  const at::Tensor mask =
      seen.unsqueeze(0).expand({batch, blocks, block, span}).reshape({-1, 1, block, span});
  const at::Tensor y = Masked(cut(q, rows, block), cut(held.keys, places.index, span),
                              cut(held.values, places.index, span), mask);
  return y.reshape({batch, blocks * block, q.size(2), q.size(3)}).narrow(1, 0, length);
}

at::Tensor Window::Cached(int64_t position) const {
  const int64_t first = std::max(sinks, position - size);
  return at::cat({at::arange(0, std::min(sinks, position), at::kLong),
                  at::arange(first, std::max(first, position), at::kLong)});
}

at::Tensor Window::Seen(const at::Tensor& query, const at::Tensor& key) const {
  const at::Tensor q = query.unsqueeze(-1), k = key.unsqueeze(-2);
  return (k <= q).logical_and((k > q - size).logical_or(k < sinks));
}

Places Find(const at::Tensor& wanted, const at::Tensor& held) {
  const at::Tensor at = at::searchsorted(held, wanted).clamp_max(held.size(0) - 1);
  const at::Tensor found = held.index_select(0, at) == wanted;
  return {at.masked_fill(found.logical_not(), 0), found};
}

}  // namespace lattice::nn
