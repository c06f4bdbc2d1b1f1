// The Transformer++ block; src/nn/attention_block.cc is the same for training.
#include <algorithm>
#include <cmath>

#include "kernels/dense/pointwise.h"
#include "kernels/engine/arena.h"
#include "runtime/pass.h"

namespace lattice::runtime {

void Pass::RotateQueriesAndKeys(float* q, float* k) {
  const int64_t dim = config_.HeadDim();
  OverRows(rows_, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      Rotate(of_attention_, q + row * config_.width, row, config_.heads, dim);
      Rotate(of_attention_, k + row * config_.KvHeads() * dim, row, config_.KvHeads(), dim);
    }
  });
}

void Pass::AttentionBlock(const BlockParts& b, int64_t layer) {
  const int64_t width = config_.width, heads = config_.heads, dim = config_.HeadDim();
  // Keys and values are shared by `group` heads of queries each.
  const int64_t kv_heads = config_.KvHeads(), kv_width = kv_heads * dim, group = heads / kv_heads;
  float *u = w_.u.Get(rows_ * width), *t = w_.t.Get(rows_ * width), *y = w_.y.Get(rows_ * width);
  float *q = w_.q.Get(rows_ * width), *k = w_.k.Get(rows_ * kv_width), *v = w_.v.Get(rows_ * kv_width);
  Project([&](int64_t first, int64_t last) { NormStream(b.mix_norm, first, last, u); }, u, rows_,
          {{&b.q, q}, {&b.k, k}, {&b.v, v}});
  ClearPending();
  RotateQueriesAndKeys(q, k);
  for (const SessionRows& s : segments_) {
    std::vector<float>&keys = s.state->keys[static_cast<size_t>(layer)],
    &values = s.state->values[static_cast<size_t>(layer)];
    keys.insert(keys.end(), k + s.first * kv_width, k + (s.first + s.count) * kv_width);
    values.insert(values.end(), v + s.first * kv_width, v + (s.first + s.count) * kv_width);
  }
  for (const SessionRows& s : segments_) {
    const float* keys = s.state->keys[static_cast<size_t>(layer)].data();
    const float* values = s.state->values[static_cast<size_t>(layer)].data();
    threads_.For(s.count * heads, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t at = (s.first + i / heads) * width + i % heads * dim, head = i % heads / group * dim;
        const int64_t seen = s.state->position + i / heads + 1;
        auto* scores = static_cast<float*>(kernels::ThreadArena(static_cast<size_t>(seen) * sizeof(float)));
        kernels::Attend({q + at, keys + head, values + head, kv_width, seen, dim,
                         static_cast<float>(1 / std::sqrt(static_cast<double>(dim))), scores, y + at});
      }
    });
  }
  Project(y, rows_, {{&b.out, t}});
  AddToStream(t);
}

}  // namespace lattice::runtime
