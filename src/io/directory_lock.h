// A lock file, so that one process at a time works in a directory.
#ifndef LATTICE_IO_DIRECTORY_LOCK_H_
#define LATTICE_IO_DIRECTORY_LOCK_H_

#include <filesystem>
#include <string_view>

namespace lattice::io {

// Locks the directory (flock) while the object lives; the kernel releases the lock when the process dies. Removes the
// temporary files (io/file.h) that processes which are gone have left in it and in the directories directly below.
// Creates the directory and, in it, the empty file .lock, which stays.
class DirectoryLock {
 public:
  // `doing` completes "another process is ... in DIRECTORY" ("training", "packing"). Throws Error when
  // another process holds it, or when the directory cannot be written.
  DirectoryLock(const std::filesystem::path& directory, std::string_view doing);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace lattice::io

#endif  // LATTICE_IO_DIRECTORY_LOCK_H_
