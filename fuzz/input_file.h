// The bytes of a fuzz target as a file that has a path and never touches a disk; where the ending of the name matters, a
// link to it in the temporary directory has that.
#ifndef LATTICE_FUZZ_INPUT_FILE_H_
#define LATTICE_FUZZ_INPUT_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace lattice::fuzz {

class InputFile {
 public:
  InputFile(const uint8_t* data, size_t size, const std::string& ending = {})
      : file_(::memfd_create("input", 0)), path_("/proc/self/fd/" + std::to_string(file_)) {
    if (file_ < 0 || ::write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
    if (ending.empty()) return;
    link_ = std::filesystem::temp_directory_path() / ("lattice-fuzz-" + std::to_string(::getpid()) + ending);
    std::filesystem::remove(link_);
    std::filesystem::create_symlink(path_, link_);
  }
  ~InputFile() {
    if (!link_.empty()) ::unlink(link_.c_str());
    ::close(file_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return link_.empty() ? path_ : link_; }

 private:
  int file_;
  std::filesystem::path path_, link_;
};

}  // namespace lattice::fuzz

#endif  // LATTICE_FUZZ_INPUT_FILE_H_
