// The Transformer++ block; src/nn/attention_block.cc is the same for training.
#include <algorithm>
#include <cmath>

#include "runtime/pass.h"
#include "runtime/query_groups.h"

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
    // As many tokens at a time as there is room for with all heads of a group; one head at a time where threads would
    // have nothing to do otherwise.
    const QueryGroups groups(heads, kv_heads, s.count * kv_heads < threads_.threads());
    const int64_t tokens = std::max<int64_t>(1, QueryGroups::kMost / group),
                  tiles = (s.count + tokens - 1) / tokens;
    threads_.For(groups.Count(tiles), 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const QueryGroups::Part part = groups.At(i);
        const int64_t tile = part.token * tokens;
        kernels::AttentionRows p;
        p.keys = keys + part.kv_head * dim;
        p.values = values + part.kv_head * dim;
        p.stride = kv_width;
        p.width = dim;
        p.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
        for (int64_t token = tile; token < std::min(tile + tokens, s.count); ++token) {
          for (int64_t h = part.first; h < part.last; ++h) {
            const int64_t at = (s.first + token) * width + h * dim;
            p.Add({q + at, y + at, s.state->position + token + 1});
          }
        }
        kernels::Attend(p);
      }
    });
  }
  Project(y, rows_, {{&b.out, t}});
  AddToStream(t);
}

}  // namespace lattice::runtime
