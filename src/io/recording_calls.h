// Write calls that are made and written down, so that io/power_loss.h can tell what a power loss could leave. Only for
// tests.
#ifndef LATTICE_IO_RECORDING_CALLS_H_
#define LATTICE_IO_RECORDING_CALLS_H_

#include <fcntl.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "io/write_calls.h"

namespace lattice::io {

// A call that succeeded. Paths are absolute.
struct Operation {
  enum class Kind {
    kCreate,  // of a file `path`, as number `file`
    kWrite,   // of `data` at the end of `file`
    kSync,    // of `file`
    kSyncDirectory,
    kRename,  // of `path` to `other`
    kUnlink,
    kMakeDirectory,
    kRemoveDirectory,
    kSymbolicLink,  // `path`, to `other`
    kHardLink,      // `path`, to `other`
    kAcknowledge,   // no call: from here on somebody relies on what was done
  };
  Kind kind;
  std::filesystem::path path, other;
  std::string data;
  int file = -1;
};

// Thread-safe. Does not sync: the test's own disk stays up.
class RecordingCalls : public WriteCalls {
 public:
  void Acknowledge() { Add({Operation::Kind::kAcknowledge, {}, {}, {}}); }
  std::vector<Operation> operations() const {
    const std::lock_guard lock(mutex_);
    return operations_;
  }

  int Open(const char* path, int flags, mode_t mode) override {
    std::error_code absent;
    const bool made = (flags & O_CREAT) != 0 && !std::filesystem::exists(path, absent);
    const std::lock_guard lock(mutex_);
    const int descriptor = WriteCalls::Open(path, flags, mode);
    if (descriptor < 0) return descriptor;
    const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
    if (made) {
      operations_.push_back({Operation::Kind::kCreate, whole, {}, {}, files_});
      numbers_[whole] = files_++;
    }
    // A file that was there before the recording has no number, and is told by its path.
    open_[descriptor] = {whole, numbers_.contains(whole) ? numbers_[whole] : -1};
    return descriptor;
  }
  ssize_t Write(int descriptor, const void* data, size_t size) override {
    const std::lock_guard lock(mutex_);
    const ssize_t done = WriteCalls::Write(descriptor, data, size);
    if (done > 0) {
      const auto& [path, file] = open_.at(descriptor);
      const std::string bytes(static_cast<const char*>(data), static_cast<size_t>(done));
      operations_.push_back({Operation::Kind::kWrite, path, {}, bytes, file});
    }
    return done;
  }
  int Sync(int descriptor) override {
    const std::lock_guard lock(mutex_);
    const auto& [path, file] = open_.at(descriptor);
    const bool directory = std::filesystem::is_directory(path);
    operations_.push_back(
        {directory ? Operation::Kind::kSyncDirectory : Operation::Kind::kSync, path, {}, {}, file});
    return 0;
  }
  int Rename(const char* from, const char* to) override {
    return Noted(WriteCalls::Rename(from, to), {Operation::Kind::kRename, Whole(from), Whole(to), {}});
  }
  int Unlink(const char* path) override {
    return Noted(WriteCalls::Unlink(path), {Operation::Kind::kUnlink, Whole(path), {}, {}});
  }
  int MakeDirectory(const char* path, mode_t mode) override {
    return Noted(WriteCalls::MakeDirectory(path, mode),
                 {Operation::Kind::kMakeDirectory, Whole(path), {}, {}});
  }
  int RemoveDirectory(const char* path) override {
    return Noted(WriteCalls::RemoveDirectory(path), {Operation::Kind::kRemoveDirectory, Whole(path), {}, {}});
  }
  int Link(const char* target, const char* path) override {
    return Noted(WriteCalls::Link(target, path), {Operation::Kind::kSymbolicLink, Whole(path), target, {}});
  }
  int HardLink(const char* existing, const char* path) override {
    return Noted(WriteCalls::HardLink(existing, path),
                 {Operation::Kind::kHardLink, Whole(path), Whole(existing), {}});
  }

 private:
  static std::filesystem::path Whole(const char* path) {
    return std::filesystem::absolute(path).lexically_normal();
  }
  void Add(Operation operation) {
    const std::lock_guard lock(mutex_);
    operations_.push_back(std::move(operation));
  }
  int Noted(int result, Operation operation) {
    if (result == 0) {
      const std::lock_guard lock(mutex_);
      if (operation.kind == Operation::Kind::kRename) Follow(operation.path, operation.other);
      operations_.push_back(std::move(operation));
    }
    return result;
  }
  // A renamed file keeps its number.
  void Follow(const std::filesystem::path& from, const std::filesystem::path& to) {
    const auto found = numbers_.find(from);
    numbers_.erase(to);
    if (found == numbers_.end()) return;
    numbers_[to] = found->second;
    numbers_.erase(from);
  }

  mutable std::mutex mutex_;
  std::vector<Operation> operations_;
  std::map<int, std::pair<std::filesystem::path, int>> open_;
  std::map<std::filesystem::path, int> numbers_;
  int files_ = 0;
};

}  // namespace lattice::io

#endif  // LATTICE_IO_RECORDING_CALLS_H_
