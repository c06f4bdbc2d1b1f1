// The system calls that write files, and which object makes them now.
#include "io/write_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace lattice::io {
namespace {

WriteCalls system_calls;
std::atomic<WriteCalls*> current{&system_calls};

}  // namespace

int WriteCalls::Open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }
ssize_t WriteCalls::Write(int descriptor, const void* data, size_t size) {
  return ::write(descriptor, data, size);
}
int WriteCalls::Sync(int descriptor) { return ::fsync(descriptor); }
int WriteCalls::Close(int descriptor) { return ::close(descriptor); }
int WriteCalls::Rename(const char* from, const char* to) { return std::rename(from, to); }
int WriteCalls::Unlink(const char* path) { return ::unlink(path); }
int WriteCalls::MakeDirectory(const char* path, mode_t mode) { return ::mkdir(path, mode); }
int WriteCalls::RemoveDirectory(const char* path) { return ::rmdir(path); }
int WriteCalls::Link(const char* target, const char* path) { return ::symlink(target, path); }
int WriteCalls::HardLink(const char* existing, const char* path) { return ::link(existing, path); }

WriteCalls& CurrentWriteCalls() { return *current.load(); }

ScopedWriteCalls::ScopedWriteCalls(WriteCalls& calls) : previous_(current.exchange(&calls)) {}
ScopedWriteCalls::~ScopedWriteCalls() { current.store(previous_); }

}  // namespace lattice::io
