// An LRU cache of session states, keyed by a rolling hash over the tokens of the prefix, so that one walk
// along a prompt tests all its prefixes.
#include "runtime/prefix_cache.h"

#include <algorithm>

#include "base/error.h"

namespace lattice::runtime {
namespace {

constexpr uint64_t kEmptyKey = 0x9e3779b97f4a7c15;

// The hash of a prefix extended by one token.
uint64_t Extend(uint64_t key, int32_t token) {
  key ^= static_cast<uint32_t>(token);
  key *= 0xff51afd7ed558ccd;
  return key ^ (key >> 29);
}

}  // namespace

PrefixCache::PrefixCache(int64_t budget_bytes) : budget_(budget_bytes) {
  Check(budget_bytes >= 0, "[cache] a budget of ", budget_bytes, " bytes; expected 0 or more");
}

PrefixCache::Hit PrefixCache::Find(std::span<const int32_t> tokens) {
  const std::lock_guard lock(mutex_);
  ++lookups_;
  auto best = entries_.end();
  uint64_t key = kEmptyKey;
  for (size_t length = 1; length <= tokens.size(); ++length) {
    key = Extend(key, tokens[length - 1]);
    const auto [first, last] = index_.equal_range(key);
    for (auto at = first; at != last; ++at) {
      const std::vector<int32_t>& known = at->second->tokens;
      if (known.size() == length && std::equal(known.begin(), known.end(), tokens.begin())) best = at->second;
    }
  }
  if (best == entries_.end()) return {};
  ++hits_;
  entries_.splice(entries_.begin(), entries_, best);
  return {best->state, static_cast<int64_t>(best->tokens.size())};
}

void PrefixCache::Put(std::span<const int32_t> tokens, const Snapshot& state) {
  Check(!state.empty() && state.position() == static_cast<int64_t>(tokens.size()),
        "[cache] the state does not belong to the ", tokens.size(), " tokens it is to be kept for");
  uint64_t key = kEmptyKey;
  for (const int32_t token : tokens) key = Extend(key, token);
  const int64_t bytes = static_cast<int64_t>(tokens.size_bytes() + sizeof(Entry)) + state.Bytes();
  if (bytes > budget_) return;

  const std::lock_guard lock(mutex_);
  const auto [first, last] = index_.equal_range(key);
  for (auto at = first; at != last; ++at) {
    if (std::equal(tokens.begin(), tokens.end(), at->second->tokens.begin(), at->second->tokens.end())) {
      entries_.splice(entries_.begin(), entries_, at->second);
      return;
    }
  }
  while (bytes_ + bytes > budget_) Drop(std::prev(entries_.end()));
  // The entry is built in a separate list, so that the cache stays consistent if an allocation throws.
  std::list<Entry> added;
  added.push_front({key, {tokens.begin(), tokens.end()}, state, bytes});
  index_.emplace(key, added.begin());
  entries_.splice(entries_.begin(), added);
  bytes_ += bytes;
}

void PrefixCache::Drop(std::list<Entry>::iterator entry) {
  const auto [first, last] = index_.equal_range(entry->key);
  index_.erase(std::find_if(first, last, [&](const auto& at) { return at.second == entry; }));
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

int64_t PrefixCache::Bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}
int64_t PrefixCache::Entries() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(entries_.size());
}
int64_t PrefixCache::Hits() const {
  const std::lock_guard lock(mutex_);
  return hits_;
}
int64_t PrefixCache::Lookups() const {
  const std::lock_guard lock(mutex_);
  return lookups_;
}

}  // namespace lattice::runtime
