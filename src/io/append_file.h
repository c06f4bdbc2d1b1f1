// A file that only grows, such as a log of lines, on a disk that may be full or fail for a while.
#ifndef LATTICE_IO_APPEND_FILE_H_
#define LATTICE_IO_APPEND_FILE_H_

#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

namespace lattice::io {

// What cannot be written is kept in memory and goes first the next time, from the byte where the disk stopped: no
// line is lost, doubled or cut in two as long as the process lives. Goes through the calls of io/write_calls.h. Append
// and Sync may be called by different threads.
class AppendFile {
 public:
  // Opens the file for appending, and creates it when it is not there. Throws Error when that fails.
  explicit AppendFile(const std::filesystem::path& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Writes the text behind everything appended so far, or keeps it. Errors of the disk are not reported here.
  void Append(std::string_view text);

  // Writes what is kept and syncs the file. Throws Error when something is still not on disk. Appending goes on
  // while the disk works.
  void Sync();

 private:
  bool WriteWaiting();
  void Replace();

  const std::filesystem::path path_;
  std::mutex syncing_;  // taken before mutex_
  std::mutex mutex_;
  int descriptor_ = -1;
  int error_ = 0;  // of the last write
  std::string waiting_;
  bool suspect_ = false;  // a sync has failed
};

}  // namespace lattice::io

#endif  // LATTICE_IO_APPEND_FILE_H_
