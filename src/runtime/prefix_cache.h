// States of prompts that have been read before, so that a shared beginning is computed once.
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

// Maps a prefix of tokens to the state behind it. Holds at most `budget` bytes of states and tokens; the ones
// not used for longest go first. All methods may be called from several threads.
class PrefixCache {
 public:
  explicit PrefixCache(int64_t budget_bytes);

  struct Hit {
    Snapshot state;      // empty when nothing is known
    int64_t tokens = 0;  // how many of the asked tokens it has read
  };
  // The longest known prefix of `tokens`.
  Hit Find(std::span<const int32_t> tokens);
  // Remembers that `state` is what `tokens` lead to. A state that is known already stays as it is. Nothing
  // happens when it alone exceeds the budget.
  // Throws Error when the state has read another number of tokens.
  void Put(std::span<const int32_t> tokens, const Snapshot& state);

  int64_t Bytes() const;
  int64_t Entries() const;
  // Finds that had a prefix, and all.
  int64_t Hits() const;
  int64_t Lookups() const;

 private:
  struct Entry {
    uint64_t key;
    std::vector<int32_t> tokens;  // compared, so that equal hashes never mix up prompts
    Snapshot state;
    int64_t bytes;
  };
  void Drop(std::list<Entry>::iterator entry);

  const int64_t budget_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // newest use first
  std::unordered_multimap<uint64_t, std::list<Entry>::iterator> index_;
  int64_t bytes_ = 0, hits_ = 0, lookups_ = 0;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_PREFIX_CACHE_H_
