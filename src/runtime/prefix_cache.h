// A cache of session states by prompt prefix, so that a prefix shared by several prompts is computed once.
#ifndef LATTICE_RUNTIME_PREFIX_CACHE_H_
#define LATTICE_RUNTIME_PREFIX_CACHE_H_

#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/session.h"

namespace lattice::runtime {

// Maps a prefix of tokens to the state after reading it. Holds at most `budget_bytes` of states and tokens
// and evicts the least recently used entries first. All methods may be called from several threads.
class PrefixCache {
 public:
  explicit PrefixCache(int64_t budget_bytes);

  struct Hit {
    Snapshot state;      // empty on a miss
    int64_t tokens = 0;  // length of the cached prefix
  };
  // The longest cached prefix of `tokens`.
  Hit Find(std::span<const int32_t> tokens);
  // Caches `state` as the state after reading `tokens`. An existing entry for the same tokens is kept. Does
  // nothing when the entry alone exceeds the budget. Throws Error when the state has read another number of
  // tokens.
  void Put(std::span<const int32_t> tokens, const Snapshot& state);

  int64_t Bytes() const;
  int64_t Entries() const;
  // Calls of Find that found a prefix, and all calls.
  int64_t Hits() const;
  int64_t Lookups() const;

 private:
  struct Entry {
    uint64_t key;
    std::vector<int32_t> tokens;  // compared on lookup, so that a hash collision cannot return a wrong state
    Snapshot state;
    int64_t bytes;
  };
  void Drop(std::list<Entry>::iterator entry);

  const int64_t budget_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_multimap<uint64_t, std::list<Entry>::iterator> index_;
  int64_t bytes_ = 0, hits_ = 0, lookups_ = 0;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_PREFIX_CACHE_H_
