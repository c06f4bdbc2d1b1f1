#include "io/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "io/directory.h"

namespace lattice::io {

DirectoryLock::DirectoryLock(const std::filesystem::path& directory, std::string_view doing) {
  MakeDirectories(directory);
  const std::filesystem::path path = directory / ".lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const int error = errno;
  Check(descriptor_ >= 0, "[lock] cannot write in ", directory.string(), ": ", SystemReason(error));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor_);
    Fail("[lock] another process is ", doing, " in ", directory.string(), "; give this one another --out");
  }
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

}  // namespace lattice::io
