// Write calls that fail on demand. Only for tests.
#ifndef LATTICE_IO_FAILING_CALLS_H_
#define LATTICE_IO_FAILING_CALLS_H_

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string_view>

#include "io/write_calls.h"

namespace lattice::io {

// Given as the error: the call succeeds, but a write transfers one byte only.
inline constexpr int kShortWrite = 0;

// The faults that tests inject into each call in turn, and what the caller's error must then say.
struct Fault {
  int error;
  std::string_view message;
};
inline constexpr Fault kFaults[] = {
    {ENOSPC, "No space left"}, {EIO, "Input/output error"}, {kShortWrite, "no error"}};

// Fails calls first, first + 1, ... first + count - 1 with `error`; the others work. Writes transfer at most
// `most` bytes, so callers see short writes. Close never fails: it has to release the descriptor.
class FailingCalls : public WriteCalls {
 public:
  FailingCalls(int first, int error, int count = 1, size_t most = 3)
      : first_(first), count_(count), error_(error), most_(most) {}
  int calls() const { return calls_; }

  int Open(const char* path, int flags, mode_t mode) override {
    return Fails() ? -1 : WriteCalls::Open(path, flags, mode);
  }
  ssize_t Write(int descriptor, const void* data, size_t size) override {
    const bool hit = Hit();
    if (hit && error_ != kShortWrite) return -1;
    return WriteCalls::Write(descriptor, data, hit ? 1 : std::min(size, most_));
  }
  // Does not sync: nothing here has to survive a power cut.
  int Sync(int) override { return Fails() ? -1 : 0; }
  int Rename(const char* from, const char* to) override {
    return Fails() ? -1 : WriteCalls::Rename(from, to);
  }
  int MakeDirectory(const char* path, mode_t mode) override {
    return Fails() ? -1 : WriteCalls::MakeDirectory(path, mode);
  }
  int HardLink(const char* existing, const char* path) override {
    return Fails() ? -1 : WriteCalls::HardLink(existing, path);
  }
  int Link(const char* target, const char* path) override {
    return Fails() ? -1 : WriteCalls::Link(target, path);
  }

 private:
  bool Fails() { return Hit() && error_ != kShortWrite; }
  bool Hit() {
    const int call = calls_++;
    if (call < first_ || call >= first_ + count_) return false;
    errno = error_;
    return true;
  }
  std::atomic<int> calls_{0};
  int first_, count_, error_;
  size_t most_;
};

}  // namespace lattice::io

#endif  // LATTICE_IO_FAILING_CALLS_H_
