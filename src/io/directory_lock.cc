// A lock on a directory, and the removal of what its last holder left.
#include "io/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "io/directory.h"

namespace lattice::io {
namespace {

namespace fs = std::filesystem;

// The process in the name of a temporary file (file.cc: NAME.tmp-PROCESS-NUMBER, directory.cc: NAME.tmp-PROCESS), or 0.
pid_t WriterOf(const std::string& name) {
  constexpr std::string_view kMark = ".tmp-";
  const size_t at = name.rfind(kMark);
  if (at == std::string::npos) return 0;
  pid_t process = 0;
  const char* end = name.data() + name.size();
  const auto [stop, failed] = std::from_chars(name.data() + at + kMark.size(), end, process);
  return failed == std::errc() && (stop == end || *stop == '-') ? process : 0;
}

bool IsRunning(pid_t process) { return ::kill(process, 0) == 0 || errno != ESRCH; }

// Removes the temporary files of processes that are gone, here and in the directories directly below.
void RemoveTemporaries(const fs::path& directory, int depth) {
  std::vector<fs::path> left;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const pid_t writer = WriterOf(entry.path().filename().string());
    if (writer > 0 && !IsRunning(writer)) {
      left.push_back(entry.path());
    } else if (depth > 0 && entry.is_directory(ignored) && !entry.is_symlink(ignored)) {
      RemoveTemporaries(entry.path(), depth - 1);
    }
  }
  for (const fs::path& path : left) RemoveTree(path);
}

}  // namespace

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
  RemoveTemporaries(directory, 1);
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

}  // namespace lattice::io
