// Utilities for tests: temporary directories, peak memory, damaged files, error messages. Only for tests.
#ifndef LATTICE_IO_TESTING_H_
#define LATTICE_IO_TESTING_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/random.h"

namespace lattice::io {

// A file system in memory where there is one, for tests that make thousands of files.
inline std::filesystem::path MemoryDirectory() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
}

// A directory for one test: made empty, removed with everything in it.
class TestDir {
 public:
  explicit TestDir(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "lattice-test-XXXXXX").string();
    Check(::mkdtemp(name.data()) != nullptr, "cannot make a directory for the test");
    path_ = name;
  }
  ~TestDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDir(const TestDir&) = delete;
  TestDir& operator=(const TestDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  // Writes a file without the library under test and returns its path.
  std::filesystem::path Put(std::string_view name, std::string_view content) const {
    // Removed first, because some file systems flush a file that is overwritten to disk, which is slow.
    std::filesystem::remove(path_ / name);
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

  int CountEntries() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

// How much the process's peak of resident memory grows from the construction on.
class PeakMemory {
 public:
  PeakMemory() {
    // Resets the peak to the present usage, where the system supports it.
    std::ofstream("/proc/self/clear_refs") << "5";
    before_ = Kib("VmHWM:");
  }
  int64_t Grown() const { return (Kib("VmHWM:") - before_) << 10; }

 private:
  static int64_t Kib(std::string_view key) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      int64_t value = 0;
      if (word == key && status >> value) return value;
    }
    Fail("/proc/self/status has no ", key);
  }

  int64_t before_ = 0;
};

// `whole` with one bit flipped or, for every sixth i, truncated, at a place below `most` that depends on i
// only.
inline std::string Damaged(std::string whole, uint64_t i, size_t most = std::string::npos) {
  const Random random(7);
  const size_t place = random.Below(std::min(whole.size(), most), i);
  if (i % 6 == 5) {
    whole.resize(place);
  } else {
    whole[place] = static_cast<char>(whole[place] ^ (1 << random.Below(8, i + 10000)));
  }
  return whole;
}

// The message of the lattice::Error that `action` throws, or "no error".
template <typename Action>
std::string ErrorOf(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// True when `text` has every one of `parts` in it; use as EXPECT_TRUE(Says(ErrorOf(...), {"x", "y"})).
inline ::testing::AssertionResult Says(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string_view::npos) {
      return ::testing::AssertionFailure() << "expected \"" << part << "\" in: " << text;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace lattice::io

#endif  // LATTICE_IO_TESTING_H_
