// Reads, maps and atomically writes files by POSIX calls.
#include "io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "io/directory.h"
#include "io/write_calls.h"

namespace lattice::io {
namespace {

// One call of read(2) transfers less than 2 GiB.
constexpr size_t kLargestRead = size_t{1} << 30;
// Small enough that the bytes are still in the cache when the checksum reads them after the write.
constexpr size_t kLargestWrite = size_t{1} << 18;

// A name in the same directory that no other process or thread uses.
std::filesystem::path TemporaryName(const std::filesystem::path& path) {
  static std::atomic<uint64_t> counter{0};
  std::filesystem::path name = path;
  name += StrCat(".tmp-", ::getpid(), "-", counter.fetch_add(1));
  return name;
}

}  // namespace

ReadOnlyFile::ReadOnlyFile(const std::filesystem::path& path) : path_(path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer. It has no effect on regular files.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const int error = errno;
  Check(descriptor_ >= 0, "[file] cannot open ", path, ": ", SystemReason(error));
  struct stat info {};
  const int failed = ::fstat(descriptor_, &info);
  const int stat_error = errno;
  if (failed == 0 && S_ISREG(info.st_mode)) {
    size_ = static_cast<size_t>(info.st_size);
    return;
  }
  ::close(descriptor_);
  Check(failed == 0, "[file] cannot stat ", path, ": ", SystemReason(stat_error));
  Fail("[file] ", path,
       S_ISDIR(info.st_mode) ? " is a directory; expected a file" : " is not a regular file");
}

ReadOnlyFile::~ReadOnlyFile() { ::close(descriptor_); }

size_t ReadOnlyFile::Read(std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::read(descriptor_, out.data() + done, std::min(out.size() - done, kLargestRead));
    if (got < 0 && errno == EINTR) continue;
    const int error = errno;
    Check(got >= 0, "[file] cannot read ", path_, ": ", SystemReason(error));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

std::string ReadFile(const std::filesystem::path& path, size_t max_bytes) {
  const ReadOnlyFile file(path);
  const size_t size = file.size();
  Check(size <= max_bytes, "[file] ", path, " has ", size, " bytes; at most ", max_bytes, " are accepted");
  std::string content(size, '\0');
  const size_t done = file.Read(std::as_writable_bytes(std::span(content)));
  Check(done == size, "[file] ", path, " shrank while it was read: ", done, " of ", size, " bytes");
  return content;
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const ReadOnlyFile file(path);
  const size_t size = file.size();
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  const int error = errno;
  Check(address != MAP_FAILED, "[file] cannot map ", path, ": ", SystemReason(error));
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() { Unmap(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    Unmap();
    path_ = std::move(other.path_);
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

void MappedFile::Unmap() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::Forget() const {
  if (!bytes_.empty()) ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  Check(path.has_filename(), "[file] cannot write ", path, ": it names no file");
  do {
    temporary_ = TemporaryName(path);
    descriptor_ = CurrentWriteCalls().Open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) FailAt("create");
}

AtomicFile::~AtomicFile() { Discard(); }

void AtomicFile::Discard() {
  if (descriptor_ >= 0) CurrentWriteCalls().Close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) CurrentWriteCalls().Unlink(std::exchange(temporary_, {}).c_str());
}

void AtomicFile::FailAt(std::string_view step) {
  const int error = errno;
  Fail("[file] cannot ", step, " ", path_, ": ", SystemReason(error));
}

void AtomicFile::Write(std::span<const std::byte> data) {
  Check(descriptor_ >= 0, "[file] ", path_, " was written after Commit()");
  while (!data.empty()) {
    const ssize_t done =
        CurrentWriteCalls().Write(descriptor_, data.data(), std::min(data.size(), kLargestWrite));
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = EIO;
    if (done <= 0) FailAt("write");
    checksum_.Update(data.first(static_cast<size_t>(done)));
    data = data.subspan(static_cast<size_t>(done));
  }
}

void AtomicFile::Commit() {
  Check(descriptor_ >= 0, "[file] Commit() of ", path_, " was called twice");
  WriteCalls& calls = CurrentWriteCalls();
  if (calls.Sync(descriptor_) != 0) FailAt("sync");
  if (calls.Close(std::exchange(descriptor_, -1)) != 0) FailAt("close");
  if (calls.Rename(temporary_.c_str(), path_.c_str()) != 0) FailAt("rename to");
  temporary_.clear();
  SyncDirectory(path_.has_parent_path() ? path_.parent_path() : ".");
}

void WriteFileAtomic(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.Write(text);
  file.Commit();
}

uint64_t FileChecksum(const std::filesystem::path& path) { return Checksum(MappedFile(path).bytes()); }

}  // namespace lattice::io
