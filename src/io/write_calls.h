// The system calls behind every file the project writes, in one place that tests can replace: a test makes
// the n-th call fail (ENOSPC, EIO, a short write) and looks at what is left on disk, or records them and looks
// at what a power loss could leave (io/power_loss.h).
#ifndef LATTICE_IO_WRITE_CALLS_H_
#define LATTICE_IO_WRITE_CALLS_H_

#include <sys/types.h>

#include <cstddef>

namespace lattice::io {

// Each method has the contract of the system call of its name: -1 and errno on failure. Thread-safe.
class WriteCalls {
 public:
  virtual ~WriteCalls() = default;

  virtual int Open(const char* path, int flags, mode_t mode);
  virtual ssize_t Write(int descriptor, const void* data, size_t size);
  virtual int Sync(int descriptor);
  virtual int Close(int descriptor);
  virtual int Rename(const char* from, const char* to);
  virtual int Unlink(const char* path);
  virtual int MakeDirectory(const char* path, mode_t mode);
  virtual int RemoveDirectory(const char* path);
  virtual int Link(const char* target, const char* path);        // symlink(2)
  virtual int HardLink(const char* existing, const char* path);  // link(2)
};

// The calls in use: the system's, unless a test has replaced them.
WriteCalls& CurrentWriteCalls();

// Replaces the calls in use by `calls` while the object lives, for all threads. For tests; not to be nested
// across threads.
class ScopedWriteCalls {
 public:
  explicit ScopedWriteCalls(WriteCalls& calls);
  ~ScopedWriteCalls();
  ScopedWriteCalls(const ScopedWriteCalls&) = delete;
  ScopedWriteCalls& operator=(const ScopedWriteCalls&) = delete;

 private:
  WriteCalls* previous_;
};

}  // namespace lattice::io

#endif  // LATTICE_IO_WRITE_CALLS_H_
