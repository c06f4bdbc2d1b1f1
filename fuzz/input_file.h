// The bytes of a fuzz target as a file that has a path and never touches a disk.
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
  InputFile(const uint8_t* data, size_t size) : file_(::memfd_create("input", 0)) {
    if (file_ < 0 || ::write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~InputFile() { ::close(file_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace lattice::fuzz

#endif  // LATTICE_FUZZ_INPUT_FILE_H_
