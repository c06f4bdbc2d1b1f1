// Directories, renames and symbolic links, made durable and in an order that a crash cannot break.
#include "io/directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/write_calls.h"

namespace lattice::io {
namespace {

namespace fs = std::filesystem;

fs::path ParentOf(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Renames a directory at `path` out of the way.
void SetDirectoryAside(const fs::path& path) {
  std::error_code absent;
  if (!fs::is_directory(fs::symlink_status(path, absent))) return;
  fs::path aside = path;
  aside += ".aside";
  for (int number = 2; fs::exists(fs::symlink_status(aside, absent)); ++number) {
    aside = path;
    aside += StrCat(".aside-", number);
  }
  Rename(path, aside);
}

}  // namespace

void SyncDirectory(const fs::path& directory) {
  WriteCalls& calls = CurrentWriteCalls();
  const int descriptor = calls.Open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (descriptor < 0) Fail("[file] cannot open the directory ", directory, ": ", SystemReason(errno));
  const int failed = calls.Sync(descriptor);
  const int error = errno;
  calls.Close(descriptor);
  // EINVAL: the file system does not support syncing directories.
  Check(failed == 0 || error == EINVAL, "[file] cannot sync the directory ", directory, ": ",
        SystemReason(error));
}

void MakeDirectories(const fs::path& directory) {
  std::error_code absent;
  if (directory.empty() || fs::is_directory(directory, absent)) return;
  MakeDirectories(directory.has_filename() ? directory.parent_path() : directory.parent_path().parent_path());
  const fs::path parent = ParentOf(directory.has_filename() ? directory : directory.parent_path());
  // Without the sync, a power loss could take the directory away with all that was synced in it later.
  if (CurrentWriteCalls().MakeDirectory(directory.c_str(), 0777) == 0) return SyncDirectory(parent);
  const int error = errno;
  // Another process may have been faster.
  Check(error == EEXIST && fs::is_directory(directory, absent), "[file] cannot create the directory ",
        directory, ": ", SystemReason(error));
}

void Rename(const fs::path& from, const fs::path& to) {
  if (CurrentWriteCalls().Rename(from.c_str(), to.c_str()) == 0) return;
  const int error = errno;
  Fail("[file] cannot rename ", from, " to ", to, ": ", SystemReason(error));
}

void ReplaceLink(const fs::path& link, const fs::path& target) {
  WriteCalls& calls = CurrentWriteCalls();
  fs::path temporary = link;
  temporary += StrCat(".tmp-", ::getpid());
  calls.Unlink(temporary.c_str());
  if (calls.Link(target.c_str(), temporary.c_str()) != 0) {
    const int error = errno;
    Fail("[file] cannot create the link ", link, ": ", SystemReason(error));
  }
  try {
    SetDirectoryAside(link);
    Rename(temporary, link);
  } catch (const Error&) {
    calls.Unlink(temporary.c_str());
    throw;
  }
  SyncDirectory(ParentOf(link));
}

AtomicDirectory::AtomicDirectory(const fs::path& target)
    : target_(target.has_filename() ? target : target.parent_path()) {
  std::error_code absent;
  const bool taken = fs::exists(fs::symlink_status(target_, absent)) &&
                     !(fs::is_directory(target_, absent) && fs::is_empty(target_, absent));
  Check(!taken, "[file] ", target_.string(), " exists already; choose another directory");
  temporary_ = target_;
  temporary_ += StrCat(".tmp-", ::getpid());
  RemoveTree(temporary_);
  MakeDirectories(temporary_);
}

AtomicDirectory::~AtomicDirectory() {
  if (!temporary_.empty()) RemoveTree(temporary_);
}

void AtomicDirectory::Commit() {
  SyncDirectory(temporary_);
  Rename(temporary_, target_);
  temporary_.clear();
  SyncDirectory(ParentOf(target_));
}

void RemoveTree(const fs::path& directory) {
  WriteCalls& calls = CurrentWriteCalls();
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(directory, ignored))) {
    calls.Unlink(directory.c_str());
    return;
  }
  std::vector<fs::path>
      entries;  // first listed, then removed: what a directory lists while it changes is open
  for (const auto& entry : fs::directory_iterator(directory, ignored)) entries.push_back(entry.path());
  for (const fs::path& entry : entries) RemoveTree(entry);
  calls.RemoveDirectory(directory.c_str());
}

}  // namespace lattice::io
