// Changing directories so that a crash leaves the old or the new, through the calls of io/write_calls.h.
// Every error is lattice::Error with the path and the system's reason in it.
#ifndef LATTICE_IO_DIRECTORY_H_
#define LATTICE_IO_DIRECTORY_H_

#include <filesystem>

namespace lattice::io {

// fsync of a directory: makes renames and new names in it durable.
void SyncDirectory(const std::filesystem::path& directory);

// Creates the directory and its parents; fine when it is there already.
void MakeDirectories(const std::filesystem::path& directory);

// rename(2). Durable after SyncDirectory() of the parent.
void Rename(const std::filesystem::path& from, const std::filesystem::path& to);

// Makes `link` a symbolic link to `target`, replacing what link or file is there in one step, and syncs the
// parent. A directory of that name, which a copy that followed links leaves, gets the ending .aside (and a
// number when that is taken).
void ReplaceLink(const std::filesystem::path& link, const std::filesystem::path& target);

// Removes a directory with everything in it; what cannot be removed stays, silently.
void RemoveTree(const std::filesystem::path& directory);

}  // namespace lattice::io

#endif  // LATTICE_IO_DIRECTORY_H_
