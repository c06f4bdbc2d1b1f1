// What ranks tell each other by name: a thin layer over c10d's key-value store. Keys are those of one attempt,
// so that ranks that were started again do not read what an earlier attempt has left.
#ifndef LATTICE_DIST_BOARD_H_
#define LATTICE_DIST_BOARD_H_

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace lattice::dist {

// The accusation that ends a run: what happened to which rank.
inline constexpr const char* kCulprit = "culprit";

// May be used by several threads: every call is short and waits for nothing but the store itself. Throws
// c10::Error when the store does not answer.
class Board {
 public:
  Board(c10::intrusive_ptr<c10d::Store> store, std::string prefix);

  void Post(const std::string& key, const std::string& value);
  // Only the first value counts; returns the one that does.
  std::string PostFirst(const std::string& key, const std::string& value);
  bool Has(const std::vector<std::string>& keys) const;
  // The values of keys that are there.
  std::vector<std::string> Read(const std::vector<std::string>& keys) const;
  std::string Read(const std::string& key) const { return Read(std::vector<std::string>{key}).front(); }
  // Adds to a counter and returns its new value; 0 reads it.
  int64_t Add(const std::string& key, int64_t amount);
  void Remove(const std::string& key);

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

 private:
  std::vector<std::string> Full(const std::vector<std::string>& keys) const;

  c10::intrusive_ptr<c10d::Store> store_;
  std::string prefix_;
};

}  // namespace lattice::dist

#endif  // LATTICE_DIST_BOARD_H_
