// TensorBoard event files: records of length, masked CRC-32C, an Event message of protocol buffers, and its
// CRC. Written here byte by byte, for the format is small and its library is not.
#ifndef LATTICE_RUNS_EVENT_FILE_H_
#define LATTICE_RUNS_EVENT_FILE_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lattice::runs {

// CRC-32C (Castagnoli) of `data`.
uint32_t Crc32c(std::string_view data);

// The file is a by-product: errors of writing are ignored.
class EventFile {
 public:
  // Opens a new file in `directory` (created), and Restart().
  EventFile(const std::filesystem::path& directory, int64_t last_step);

  // Marks what has been said about steps after `last_step` as outdated, also by earlier files.
  void Restart(int64_t last_step);

  // One event with a scalar per (tag, value).
  void Write(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void Record(std::string_view event);

  std::ofstream file_;
};

}  // namespace lattice::runs

#endif  // LATTICE_RUNS_EVENT_FILE_H_
