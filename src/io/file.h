// Files: reading, memory mapping, and atomic writing. Every error is lattice::Error with the path and the
// system's reason in it.
#ifndef LATTICE_IO_FILE_H_
#define LATTICE_IO_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "io/checksum.h"

namespace lattice::io {

// A regular file, opened for reading; closed by the destructor. Pipes, devices and directories are refused at
// once: opening a pipe would wait for a writer that may never come.
class ReadOnlyFile {
 public:
  explicit ReadOnlyFile(const std::filesystem::path& path);
  ~ReadOnlyFile();
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;

  int descriptor() const { return descriptor_; }
  // The size when it was opened.
  size_t size() const { return size_; }

  // Fills `out` with the bytes that follow the last call's, and returns how many: fewer only at the end of
  // the file.
  size_t Read(std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  size_t size_ = 0;
};

// The whole content of a regular file. Refuses directories, devices and files of more than `max_bytes`.
std::string ReadFile(const std::filesystem::path& path,
                     size_t max_bytes = std::numeric_limits<size_t>::max());

// A regular file mapped read-only for the lifetime of the object. The bytes stay valid when the object is
// moved and when the file is replaced by rename; truncating a file in place while it is mapped kills the
// reader (SIGBUS), so writers must go through AtomicFile. Reading from several threads is fine.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  const std::filesystem::path& path() const { return path_; }
  // Drops the pages that are in memory; the system reads them again when they are accessed.
  void Forget() const;

 private:
  void Unmap();

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

// Writes a file atomically: it appears under its name complete and on disk, or not at all. The bytes go to a
// temporary file in the same directory, then fsync, rename, fsync of the directory. Without Commit() the
// destructor removes the temporary file. An existing file of the name is replaced (a symbolic link is
// replaced, not followed). One thread at a time.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(std::span<const std::byte> data);
  void Write(std::string_view text) { Write(std::as_bytes(std::span(text))); }

  // Makes the file visible. Throws when a step fails; the previous file is then unchanged, unless it was the
  // last step (fsync of the directory) that failed: by then the new file has taken its place.
  void Commit();

  // io::Checksum of what was written so far.
  uint64_t checksum() const { return checksum_.value(); }

 private:
  [[noreturn]] void FailAt(std::string_view step);
  void Discard();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  ChecksumStream checksum_;
};

// AtomicFile in one call.
void WriteFileAtomic(const std::filesystem::path& path, std::string_view text);

// io::Checksum of a file's content.
uint64_t FileChecksum(const std::filesystem::path& path);

}  // namespace lattice::io

#endif  // LATTICE_IO_FILE_H_
