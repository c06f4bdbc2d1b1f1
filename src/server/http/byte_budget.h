// The bytes of requests and answers that are on their way, all connections together.
#ifndef LATTICE_SERVER_HTTP_BYTE_BUDGET_H_
#define LATTICE_SERVER_HTTP_BYTE_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace lattice::server::http {

// Any thread.
class ByteBudget {
 public:
  explicit ByteBudget(int64_t limit) : limit_(limit) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  int64_t Used() const { return used_; }
  // The most that was in use at once since the last Forget.
  int64_t Peak() const { return peak_; }
  void ForgetPeak() { peak_ = used_.load(); }

 private:
  friend class ReservedBytes;
  bool Take(int64_t bytes) {
    const int64_t used = used_ += bytes;
    if (used > limit_) return used_ -= bytes, false;
    for (int64_t peak = peak_; peak < used && !peak_.compare_exchange_weak(peak, used);) {
    }
    return true;
  }
  void Give(int64_t bytes) { used_ -= bytes; }

  const int64_t limit_;
  std::atomic<int64_t> used_{0}, peak_{0};
};

// A part of the budget, given back at the end of the object's life. The first kFree bytes are not counted, so
// that small requests are served however full it is. One thread at a time.
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

  // Makes the part as large as `bytes` need; false, and nothing changes, when there is not so much.
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
