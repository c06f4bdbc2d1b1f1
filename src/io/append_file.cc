// Appends to a file, and keeps what the disk refuses.
#include "io/append_file.h"

#include <fcntl.h>

#include <cerrno>

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/write_calls.h"

namespace lattice::io {
namespace {

int OpenForAppending(const std::filesystem::path& path) {
  const int descriptor =
      CurrentWriteCalls().Open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const int error = errno;
  Check(descriptor >= 0, "[file] cannot write ", path, ": ", SystemReason(error));
  return descriptor;
}

}  // namespace

AppendFile::AppendFile(const std::filesystem::path& path)
    : path_(path), descriptor_(OpenForAppending(path)) {}

AppendFile::~AppendFile() {
  WriteWaiting();
  CurrentWriteCalls().Close(descriptor_);
}

void AppendFile::Append(std::string_view text) {
  const std::lock_guard lock(mutex_);
  waiting_ += text;
  WriteWaiting();
}

// Returns whether nothing waits any more; error_ says why otherwise.
bool AppendFile::WriteWaiting() {
  size_t written = 0;
  while (written < waiting_.size()) {
    const ssize_t done =
        CurrentWriteCalls().Write(descriptor_, waiting_.data() + written, waiting_.size() - written);
    if (done < 0 && errno == EINTR) continue;
    error_ = done == 0 ? EIO : errno;
    if (done <= 0) break;
    written += static_cast<size_t>(done);
  }
  waiting_.erase(0, written);
  return waiting_.empty();
}

void AppendFile::Sync() {
  const std::lock_guard one_at_a_time(syncing_);
  int descriptor = -1;
  {
    const std::lock_guard lock(mutex_);
    if (suspect_) Replace();
    Check(WriteWaiting(), "[file] cannot write ", path_, ": ", SystemReason(error_));
    descriptor = descriptor_;
  }
  if (CurrentWriteCalls().Sync(descriptor) == 0) return;
  const int error = errno;
  suspect_ = true;
  Fail("[file] cannot sync ", path_, ": ", SystemReason(error));
}

// After a sync that failed the system may hold pages for clean that never reached the disk, and a second sync would
// succeed without writing them. So the content goes to a new file.
void AppendFile::Replace() {
  WriteFileAtomic(path_, ReadFile(path_));
  const int fresh = OpenForAppending(path_);
  CurrentWriteCalls().Close(descriptor_);
  descriptor_ = fresh;
  suspect_ = false;
}

}  // namespace lattice::io
