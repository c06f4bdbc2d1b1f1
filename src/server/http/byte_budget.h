// A limit on the memory of all request bodies and answers in flight, over all connections.
#ifndef LATTICE_SERVER_HTTP_BYTE_BUDGET_H_
#define LATTICE_SERVER_HTTP_BYTE_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace lattice::server::http {

// May be used from any thread.
class ByteBudget {
 public:
  explicit ByteBudget(int64_t limit) : limit_(limit) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  int64_t Used() const { return used_; }

 private:
  friend class ReservedBytes;
  bool Take(int64_t bytes) {
    const int64_t used = used_ += bytes;
    if (used > limit_) return used_ -= bytes, false;
    return true;
  }
  void Give(int64_t bytes) { used_ -= bytes; }

  const int64_t limit_;
  std::atomic<int64_t> used_{0};
};

// A reservation in the budget, released by the destructor. The first kFree bytes of each are not counted, so
// that small requests are served even when the budget is exhausted. Used by one thread at a time.
class ReservedBytes {
 public:
  static constexpr int64_t kFree = 64 << 10;

  explicit ReservedBytes(ByteBudget& budget) : budget_(&budget) {}
  ReservedBytes(ReservedBytes&& other) noexcept
      : budget_(other.budget_), held_(std::exchange(other.held_, 0)) {}
  ReservedBytes& operator=(ReservedBytes&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(held_, other.held_);
    return *this;
  }
  ~ReservedBytes() { budget_->Give(held_); }

  // Changes the reservation to `bytes`. Returns false, and changes nothing, when the budget is too small.
  bool Resize(int64_t bytes) {
    const int64_t wanted = std::max<int64_t>(0, bytes - kFree);
    if (wanted > held_ && !budget_->Take(wanted - held_)) return false;
    if (wanted < held_) budget_->Give(held_ - wanted);
    held_ = wanted;
    return true;
  }

 private:
  ByteBudget* budget_;
  int64_t held_ = 0;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_BYTE_BUDGET_H_
