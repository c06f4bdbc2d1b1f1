// A cache of the tokens of words. Words repeat, so most lookups hit.
#ifndef LATTICE_TEXT_WORD_CACHE_H_
#define LATTICE_TEXT_WORD_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lattice::text {

// An insert-only hash table: entries are never changed or removed, so threads read it without locks. (All
// threads look up the same frequent words, which would contend for a lock.) Bounded: when all places of a
// word are taken, it is not stored. The ids must depend on the word only, so that results do not depend on
// what was cached before.
class WordCache {
 public:
  WordCache() : places_(std::make_unique<std::atomic<Entry*>[]>(kPlaces)) {}
  ~WordCache();
  WordCache(const WordCache&) = delete;
  WordCache& operator=(const WordCache&) = delete;

  // Appends the ids of `word` to `out` and returns true, or returns false when it is not cached.
  bool Append(std::string_view word, std::vector<int32_t>& out) const;
  void Store(std::string_view word, std::span<const int32_t> ids);

 private:
  struct Entry {
    std::string word;
    std::vector<int32_t> ids;
  };
  static constexpr size_t kPlaces = 1 << 17;
  static constexpr size_t kProbes = 8;
  static constexpr size_t kLongestWord = 48;

  // The i-th place where a word may be stored (linear probing).
  std::atomic<Entry*>& Place(size_t hash, size_t i) const { return places_[(hash + i) % kPlaces]; }

  std::unique_ptr<std::atomic<Entry*>[]> places_;
};

}  // namespace lattice::text

#endif  // LATTICE_TEXT_WORD_CACHE_H_
