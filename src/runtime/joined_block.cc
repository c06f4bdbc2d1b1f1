// Attention over a window and a memory of what has left it; src/nn/joined_block.cc is the same for training.
//
// The cache of a window is a ring: token p is in row p while p < sinks, else in row sinks + (p - sinks) % window. In a
// pass, tokens before the session's position are in the cache and the others among the rows of the pass; the rows are
// put into the cache at the end. Tokens are always taken in their order, so that it does not matter for a result where
// a text is cut.
#include <algorithm>
#include <cmath>

#include "kernels/dense/pointwise.h"
#include "runtime/pass.h"
#include "runtime/query_groups.h"
#include "runtime/vectors.h"

namespace lattice::runtime {
namespace {

// One session's tokens around a pass: keys or values, and where each is.
struct CachedRows {
  const model::ModelConfig& config;
  int64_t position;  // of the first row of the pass
  int64_t width;     // of a row

  int64_t CacheRow(int64_t token) const {
    return token < config.sinks ? token : config.sinks + (token - config.sinks) % config.window;
  }

  // Cuts the tokens [first, last) into ranges that lie one behind the other; `cached` and `rows` are where those before
  // `position`, and those from it on, begin.
  template <typename Range>
  void Cut(int64_t first, int64_t last, const Range& range) const {
    while (first < std::min(last, position)) {
      const int64_t row = CacheRow(first),
                    end = row < config.sinks ? config.sinks : config.sinks + config.window;
      const int64_t count = std::min(std::min(last, position) - first, end - row);
      range(true, row, count);
      first += count;
    }
    if (first < last) range(false, first - position, last - first);
  }
};

}  // namespace

void Pass::JoinedBlock(const BlockParts& b, int64_t layer) {
  const int64_t width = config_.width, kv_width = config_.KvHeads() * config_.HeadDim();
  const bool memory = !b.memory->attention;
  float *u = w_.u.Get(rows_ * width), *q = w_.q.Get(rows_ * width), *k = w_.k.Get(rows_ * kv_width);
  std::vector<Projection> products = {{&b.q, q},
                                      {&b.k, k},
                                      {&b.v, w_.v.Get(rows_ * kv_width)},
                                      {&b.gate, w_.gate.Get(rows_ * width)},
                                      {&b.share.weight, w_.share.Get(rows_ * config_.heads)}};
  if (memory) AddGateProducts(b, products);
  Project([&](int64_t first, int64_t last) { NormStream(b.mix_norm, first, last, u); }, u, rows_, products,
          {layer, kWithFeedForward, 1});
  ClearPending();
  RotateQueriesAndKeys(q, k);
  if (memory) MakeGates(b);
  if (b.config.window > 0) AttendWindow(b, layer);
  if (memory) {
    TakeLeaving(b, layer);
    const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config_.HeadDim())));
    OverRows(rows_, [&](int64_t first, int64_t last) {
      for (int64_t i = first * width; i < last * width; ++i) q[i] *= scale;
    });
    RunMemory(b, layer, {w_.old_k.Get(0), w_.old_v.Get(0), w_.old_gates});
  }
  if (b.config.window > 0) KeepWindow(b, layer);
  JoinOutput(b);
}

// w_.near = attention of every row over the sinks and the window before it.
void Pass::AttendWindow(const BlockParts& b, int64_t layer) {
  const int64_t width = config_.width, dim = config_.HeadDim(), kv_heads = config_.KvHeads();
  const int64_t kv_width = kv_heads * dim;
  const QueryGroups groups(config_.heads, kv_heads);
  const int64_t window = b.config.window, sinks = b.config.sinks;
  const float *q = w_.q.Get(0), *k = w_.k.Get(0), *v = w_.v.Get(0);
  float* near = w_.near.Get(rows_ * width);
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
  for (const SessionRows& s : segments_) {
    const CachedRows tokens = {b.config, s.state->position, kv_width};
    const float* cache = LayerState(s, layer);
    const float *keys = cache + LayoutOf(layer).keys, *values = cache + LayoutOf(layer).values;
    threads_.For(groups.Count(s.count), 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const QueryGroups::Part part = groups.At(i);
        const int64_t row = s.first + part.token, token = s.state->position + part.token;
        kernels::KeyRange ranges[6];
        int64_t count = 0;
        const auto add = [&](bool cached, int64_t from, int64_t rows) {
          const int64_t begin = (cached ? from : s.first + from) * kv_width + part.kv_head * dim;
          ranges[count++] = {(cached ? keys : k) + begin, (cached ? values : v) + begin, rows};
        };
        tokens.Cut(0, std::min(sinks, token + 1), add);
        tokens.Cut(std::max(sinks, token - window + 1), token + 1, add);
        kernels::AttentionRows p;
        p.before = ranges;
        p.before_count = count - 1;
        p.keys = ranges[count - 1].keys;
        p.values = ranges[count - 1].values;
        p.stride = kv_width;
        p.width = dim;
        p.scale = scale;
        for (int64_t h = part.first; h < part.last; ++h)
          p.Add({q + row * width + h * dim, near + row * width + h * dim, ranges[count - 1].count});
        kernels::Attend(p);
      }
    });
  }
}

// For every row the key (of length 1), value and gates of the token that leaves the window then, for every head; or of
// the row itself where there is no window. Nothing is written where no token leaves.
void Pass::TakeLeaving(const BlockParts& b, int64_t layer) {
  const int64_t width = config_.width, heads = config_.heads, dim = config_.HeadDim();
  const int64_t kv_width = config_.KvHeads() * dim, group = heads / config_.KvHeads();
  const int64_t window = b.config.window;
  const LayerLayout& layout = LayoutOf(layer);
  const float *k = w_.k.Get(0), *v = w_.v.Get(0);
  float *old_k = w_.old_k.Get(rows_ * width), *old_v = w_.old_v.Get(rows_ * width);
  const std::vector<kernels::GateInfo>& gates = b.memory->gates;
  const auto gate_size = [&](size_t i) { return heads * (gates[i].per_slot ? config_.Slots() : 1); };
  for (size_t i = 0; i < gates.size(); ++i) w_.old_gates[i].Get(rows_ * gate_size(i));
  const auto take = [&](const SessionRows& s, int64_t t) {
    const CachedRows tokens = {b.config, s.state->position, kv_width};
    const int64_t row = s.first + t, token = s.state->position + t - window;
    const bool absent = window > 0 && token < b.config.sinks, cached = token < s.state->position;
    const float* cache = LayerState(s, layer);
    const int64_t from = absent ? 0 : cached ? tokens.CacheRow(token) : s.first + token - s.state->position;
    const float* key = (cached ? cache + layout.keys : k) + from * kv_width;
    const float* value = (cached ? cache + layout.values : v) + from * kv_width;
    for (int64_t head = 0; head < heads; ++head) {
      float *to_k = old_k + row * width + head * dim, *to_v = old_v + row * width + head * dim;
      if (absent) {
        std::fill_n(to_k, dim, 0.0f);
        std::fill_n(to_v, dim, 0.0f);
      } else {
        std::copy_n(key + head / group * dim, dim, to_k);
        std::copy_n(value + head / group * dim, dim, to_v);
      }
    }
    NormalizeVectors(model::VectorNorm::kL2, heads, dim, old_k + row * width);
    for (size_t i = 0; i < gates.size(); ++i) {
      if (b.gates[i].bias == nullptr) continue;
      const int64_t size = gate_size(i);
      float* to = w_.old_gates[i].Get(0) + row * size;
      if (absent) {
        std::fill_n(to, size, static_cast<float>(kernels::IdleValue(gates[i])));
      } else if (cached) {
        std::copy_n(cache + layout.gates[i] + (from - b.config.sinks) * size, size, to);
      } else {
        std::copy_n(w_.gates[i].Get(0) + from * size, size, to);
      }
    }
  };
  for (const SessionRows& s : segments_) {
    threads_.For(s.count, 8, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) take(s, t);
    });
  }
}

// Puts the rows of the pass into the caches.
void Pass::KeepWindow(const BlockParts& b, int64_t layer) {
  const int64_t kv_width = config_.KvHeads() * config_.HeadDim(), window = b.config.window,
                sinks = b.config.sinks;
  const LayerLayout& layout = LayoutOf(layer);
  for (const SessionRows& s : segments_) {
    const CachedRows tokens = {b.config, s.state->position, kv_width};
    float* cache = LayerState(s, layer);
    for (int64_t t = 0; t < s.count; ++t) {
      const int64_t token = s.state->position + t, row = s.first + t, to = tokens.CacheRow(token);
      if (token >= sinks && t < s.count - window) continue;
      std::copy_n(w_.k.Get(0) + row * kv_width, kv_width, cache + layout.keys + to * kv_width);
      std::copy_n(w_.v.Get(0) + row * kv_width, kv_width, cache + layout.values + to * kv_width);
      if (token < sinks) continue;
      for (size_t i = 0; i < b.memory->gates.size(); ++i) {
        const int64_t size = layout.gate_sizes[i];
        if (size > 0)
          std::copy_n(w_.gates[i].Get(0) + row * size, size, cache + layout.gates[i] + (to - sinks) * size);
      }
    }
  }
}

void Pass::JoinOutput(const BlockParts& b) {
  const int64_t width = config_.width, heads = config_.heads, dim = config_.HeadDim();
  const int64_t begins = b.config.window + b.config.sinks;  // the first token after one has left the window
  const bool memory = !b.memory->attention, window = b.config.window > 0;
  float *y = memory ? w_.y.Get(0) : w_.near.Get(0), *t = w_.t.Get(rows_ * width);
  const float *near = w_.near.Get(0), *gate = w_.gate.Get(0);
  float* share = w_.share.Get(0);
  std::vector<int64_t> tokens(static_cast<size_t>(rows_));
  for (const SessionRows& s : segments_) {
    for (int64_t i = 0; i < s.count; ++i) tokens[static_cast<size_t>(s.first + i)] = s.state->position + i;
  }
  const auto join = [&](int64_t row) {
    const bool ready = tokens[static_cast<size_t>(row)] >= begins;
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t at = row * heads + head;
      const float part = !window ? 1 : ready ? Sigmoid(share[at] + b.share.bias[head]) : 0;
      for (int64_t i = 0; i < dim; ++i) {
        const float far = y[at * dim + i] * b.amplitude[head * dim + i];
        y[at * dim + i] = window ? near[at * dim + i] + part * (far - near[at * dim + i]) : far;
      }
    }
    for (int64_t i = row * width; b.gate.rows > 0 && i < (row + 1) * width; ++i) y[i] *= 2 * Sigmoid(gate[i]);
  };
  const auto make = [&](int64_t first, int64_t last) {
    for (int64_t row = first; memory && row < last; ++row) join(row);
  };
  Project(make, y, rows_, {{&b.out, t}});
  AddToStream(t);
}

}  // namespace lattice::runtime
