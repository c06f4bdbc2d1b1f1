// Atomic changes of directories: after a crash there is the old content or the new. All go through the system
// calls of io/write_calls.h. Every error is lattice::Error with the path and the system's reason in it.
#ifndef LATTICE_IO_DIRECTORY_H_
#define LATTICE_IO_DIRECTORY_H_

#include <filesystem>

namespace lattice::io {

// fsync of a directory: makes renames and new names in it durable.
void SyncDirectory(const std::filesystem::path& directory);

// Creates the directory and its parents, and syncs the parents; fine when it is there already.
void MakeDirectories(const std::filesystem::path& directory);

// rename(2). Durable after SyncDirectory() of the parent.
void Rename(const std::filesystem::path& from, const std::filesystem::path& to);

// Makes `link` a symbolic link to `target`, atomically replacing a link or file of that name, and syncs the
// parent. A directory of that name (a copy that follows links makes one) is renamed to end with .aside, and
// with a number when that is taken.
void ReplaceLink(const std::filesystem::path& link, const std::filesystem::path& target);

// A new directory that appears under its name complete, or not at all: files go to path(), a directory beside it,
// until Commit() renames it. Without Commit() the destructor removes it. An empty directory of the name is replaced;
// any other file or directory is refused by the constructor.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(const std::filesystem::path& target);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  void Commit();

 private:
  std::filesystem::path target_, temporary_;
};

// Removes a directory with everything in it, or a file; what cannot be removed stays, silently.
void RemoveTree(const std::filesystem::path& directory);

}  // namespace lattice::io

#endif  // LATTICE_IO_DIRECTORY_H_
