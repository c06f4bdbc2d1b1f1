// Several files in one input, for targets that read a directory: each begins with a line "=== name". Text, so that
// mutations that move bytes do not lose everything behind them.
#ifndef LATTICE_FUZZ_SECTIONS_H_
#define LATTICE_FUZZ_SECTIONS_H_

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace lattice::fuzz {

using Files = std::map<std::string, std::string>;

inline constexpr std::string_view kSectionMark = "=== ";

// The sections whose names are among `names`; of two with one name the first counts, others are left out.
inline Files SplitSections(std::string_view input, std::span<const char* const> names) {
  Files files;
  while (input.starts_with(kSectionMark)) {
    const size_t line = std::min(input.find('\n'), input.size() - 1);
    const std::string name(input.substr(kSectionMark.size(), line - std::min(line, kSectionMark.size())));
    input.remove_prefix(line + 1);
    const size_t next = std::min(input.find("\n=== "), input.size());
    for (const char* const known : names) {
      if (name == known) files.try_emplace(name, input.substr(0, next));
    }
    input.remove_prefix(std::min(next + 1, input.size()));
  }
  return files;
}

inline std::string JoinSections(const Files& files) {
  std::string input;
  for (const auto& [name, content] : files) input += std::string(kSectionMark) + name + "\n" + content + "\n";
  return input;
}

// A directory with nothing but the files of the last input, in memory where the system has such a file system.
class InputDirectory {
 public:
  InputDirectory() {
    const std::filesystem::path memory = "/dev/shm";
    const auto base = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    path_ = base / ("lattice-fuzz-" + std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  ~InputDirectory() { std::filesystem::remove_all(path_); }
  InputDirectory(const InputDirectory&) = delete;
  InputDirectory& operator=(const InputDirectory&) = delete;

  void Write(const Files& files) {
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      std::filesystem::remove_all(entry.path());
    for (const auto& [name, content] : files) std::ofstream(path_ / name, std::ios::binary) << content;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace lattice::fuzz

#endif  // LATTICE_FUZZ_SECTIONS_H_
