// Softmax attention on torch's own kernel, with a cache of keys and values as its state.
#include <ATen/ATen.h>

#include "ops/dispatch.h"
#include "ops/inputs.h"
#include "ops/recurrence.h"

namespace lattice {
namespace {

// Keys or values [B,P,G,*] as [B,H,P,*]: every head of them repeated for the queries that share it.
at::Tensor ForHeads(const at::Tensor& x, int64_t heads) {
  const at::Tensor xh = x.transpose(1, 2);
  const int64_t group = heads / FixedSize(x, 2);
  return group == 1 ? xh : at::repeat_interleave(xh, group, 1);
}

// One sequence or an even batch: q is [B,T,H,*], the caches [B,P,G,*], keep [B,P+T].
at::Tensor Attend(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                  const std::optional<at::Tensor>& keep = {}) {
  const c10::SymInt T = q.sym_size(1), total = keys.sym_size(1);
  const int64_t heads = FixedSize(q, 2);
  const at::Tensor qh = q.transpose(1, 2), kh = ForHeads(keys, heads), vh = ForHeads(values, heads);
  if (total == T && !keep.has_value())
    return at::scaled_dot_product_attention(qh, kh, vh, {}, 0.0, /*is_causal=*/true).transpose(1, 2);
  // Token t sees the cache and the tokens up to itself.
  const at::Tensor all = at::ones_symint({T, total}, q.options().dtype(at::kBool));
  at::Tensor seen = all.tril_symint(total - T);
  // Padding is seen by nobody but itself: a softmax of nothing is no number.
  if (keep.has_value()) {
    const at::Tensor itself = seen.logical_and(all.triu_symint(total - T));
    seen = seen.logical_and(keep->unsqueeze(1).unsqueeze(1)).logical_or(itself);
  }
  return at::scaled_dot_product_attention(qh, kh, vh, seen).transpose(1, 2);
}

void CheckRank(const char* name, const at::Tensor& x) {
  TORCH_CHECK_VALUE(x.dim() == 4, "[recur] ", name, " must have 4 dimensions [B,T,H,*], got ", x.sym_sizes());
}

void CheckAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  CheckRank("q", q);
  CheckRank("k", k);
  CheckRank("v", v);
  const bool shared = FixedSize(k, 2) > 0 && FixedSize(q, 2) % FixedSize(k, 2) == 0;
  TORCH_CHECK_VALUE(
      q.sym_sizes().slice(0, 2) == k.sym_sizes().slice(0, 2) && shared && q.sym_size(3) == k.sym_size(3),
      "[recur] k has shape ", k.sym_sizes(), " but q has ", q.sym_sizes(),
      "; both must be [B,T,H,M], k with as many heads or a divisor of their number");
  TORCH_CHECK_VALUE(v.sym_sizes().slice(0, 3) == k.sym_sizes().slice(0, 3), "[recur] v has shape ",
                    v.sym_sizes(), " but k has ", k.sym_sizes(), "; v must be [B,T,H,D]");
  for (const auto& [name, x] : {std::pair{"k", &k}, {"v", &v}}) {
    TORCH_CHECK_TYPE(x->scalar_type() == q.scalar_type(), "[recur] ", name, " is ", x->scalar_type(),
                     " but q is ", q.scalar_type(), "; use one type for q, k and v");
    TORCH_CHECK_VALUE(x->device() == q.device(), "[recur] ", name, " is on ", x->device(), " but q is on ",
                      q.device(), "; move them to one device");
  }
  TORCH_CHECK_TYPE(at::isFloatingType(q.scalar_type()), "[recur] q is ", q.scalar_type(),
                   "; it must be a floating-point type");
  TORCH_CHECK_VALUE(q.sym_size(1) >= 1, "[recur] T is 0: there must be at least one token, got q of shape ",
                    q.sym_sizes());
}

at::Tensor Append(const char* name, const std::optional<at::Tensor>& past, const at::Tensor& now) {
  if (!past.has_value()) return now;
  const bool fits = past->dim() == 4 && past->sym_size(0) == now.sym_size(0) &&
                    past->sym_sizes().slice(2) == now.sym_sizes().slice(2);
  TORCH_CHECK_VALUE(fits, "[recur] the cached ", name, " in state have shape ", past->sym_sizes(),
                    " but this call's have ", now.sym_sizes(),
                    "; pass the state that an earlier call returned");
  TORCH_CHECK_TYPE(past->scalar_type() == now.scalar_type(), "[recur] the cached ", name, " in state are ",
                   past->scalar_type(), " but this call's are ", now.scalar_type(), "; use one type");
  TORCH_CHECK_VALUE(past->device() == now.device(), "[recur] the cached ", name, " in state are on ",
                    past->device(), " but this call's are on ", now.device(), "; move them to one device");
  return at::cat({*past, now}, 1);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> Attention(const at::Tensor& q, const at::Tensor& k,
                                                         const at::Tensor& v,
                                                         const std::optional<at::Tensor>& past_k,
                                                         const std::optional<at::Tensor>& past_v,
                                                         const std::optional<at::Tensor>& cu_seqlens,
                                                         const std::optional<at::Tensor>& keep) {
  CheckAttention(q, k, v);
  RequireOneDevice("[recur]", {q, keep});
  TORCH_CHECK_VALUE(past_k.has_value() == past_v.has_value(),
                    "[recur] softmax_attention's state is a pair: pass cached keys and values, or neither");
  if (!cu_seqlens.has_value()) {
    const at::Tensor keys = Append("keys", past_k, k), values = Append("values", past_v, v);
    TORCH_CHECK_VALUE(keys.sym_size(1) == values.sym_size(1), "[recur] the cache holds ",
                      keys.sym_size(1) - k.sym_size(1), " keys but ", values.sym_size(1) - v.sym_size(1),
                      " values");
    TORCH_CHECK_VALUE(
        !keep.has_value() || (keep->scalar_type() == at::kBool && keep->dim() == 2 &&
                              keep->sym_size(0) == q.sym_size(0) && keep->sym_size(1) == keys.sym_size(1)),
        "[recur] keep must be bool [B,P+T] = [", q.sym_size(0), ",", keys.sym_size(1), "], got ",
        keep.has_value() ? keep->sym_sizes() : c10::SymIntArrayRef());
    return {Attend(q, keys, values, keep), keys, values};
  }
  TORCH_CHECK_VALUE(!keep.has_value(), "[recur] softmax_attention takes keep or cu_seqlens, not both");
  TORCH_CHECK_VALUE(!past_k.has_value(), "[recur] softmax_attention takes a state or cu_seqlens, not both");
  TORCH_CHECK_VALUE(q.sym_size(0) == 1,
                    "[recur] with cu_seqlens the batch must be 1 (sequences lie one after the other), got ",
                    q.sym_size(0));
  const std::vector<int64_t> at = SequenceStarts("[recur]", *cu_seqlens, q.size(1));
  std::vector<at::Tensor> parts;
  for (size_t n = 0; n + 1 < at.size(); ++n) {
    const int64_t length = at[n + 1] - at[n];
    if (length == 0) continue;
    const auto part = [&](const at::Tensor& x) { return x.narrow(1, at[n], length); };
    parts.push_back(Attend(part(q), part(k), part(v)));
  }
  return {at::cat(parts, 1), k, v};
}

}  // namespace lattice
