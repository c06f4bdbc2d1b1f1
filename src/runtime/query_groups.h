// How queries of attention are put together: heads that share a head of keys and values go through those at once.
#ifndef LATTICE_RUNTIME_QUERY_GROUPS_H_
#define LATTICE_RUNTIME_QUERY_GROUPS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/dense/attention.h"

namespace lattice::runtime {

// Cuts the heads of every group into parts of at most kMost heads, or of one head each where `alone`: work for more threads.
class QueryGroups {
 public:
  static constexpr int64_t kMost = kernels::AttentionRows::kMost;

  // Heads [first, last) of queries, which read the head kv_head, at one of several tokens (or tiles of tokens).
  struct Part {
    int64_t token, kv_head, first, last;
  };

  QueryGroups(int64_t heads, int64_t kv_heads, bool alone = false)
      : kv_heads_(kv_heads),
        group_(heads / kv_heads),
        together_(alone ? 1 : std::min(group_, kMost)),
        parts_((group_ + together_ - 1) / together_) {}

  // The parts of so many tokens, and the i-th of them.
  int64_t Count(int64_t tokens) const { return tokens * kv_heads_ * parts_; }
  Part At(int64_t i) const {
    const int64_t kv_head = i / parts_ % kv_heads_, first = kv_head * group_ + i % parts_ * together_;
    return {i / (kv_heads_ * parts_), kv_head, first, std::min(first + together_, (kv_head + 1) * group_)};
  }

 private:
  int64_t kv_heads_, group_, together_, parts_;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_QUERY_GROUPS_H_
