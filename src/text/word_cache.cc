// A lock-free, insert-only hash table from words to their tokens.
#include "text/word_cache.h"

#include <functional>

namespace lattice::text {

WordCache::~WordCache() {
  for (size_t i = 0; i < kPlaces; ++i) delete places_[i].load();
}

bool WordCache::Append(std::string_view word, std::vector<int32_t>& out) const {
  if (word.size() > kLongestWord) return false;
  const size_t hash = std::hash<std::string_view>()(word);
  for (size_t i = 0; i < kProbes; ++i) {
    const Entry* entry = Place(hash, i).load(std::memory_order_acquire);
    if (entry == nullptr) return false;
    if (entry->word == word) {
      out.insert(out.end(), entry->ids.begin(), entry->ids.end());
      return true;
    }
  }
  return false;
}

void WordCache::Store(std::string_view word, std::span<const int32_t> ids) {
  if (word.size() > kLongestWord) return;
  const size_t hash = std::hash<std::string_view>()(word);
  auto fresh = std::make_unique<Entry>(Entry{std::string(word), {ids.begin(), ids.end()}});
  for (size_t i = 0; i < kProbes; ++i) {
    Entry* taken = nullptr;
    if (Place(hash, i).compare_exchange_strong(taken, fresh.get(), std::memory_order_acq_rel)) {
      fresh.release();
      return;
    }
    if (taken->word == word) return;
  }
}

}  // namespace lattice::text
