// TensorBoard event files. A record is its length, a masked CRC-32C of the length, an Event message (protocol
// buffers), and the CRC of the message. They are written by hand, because the format is small and the library
// is not.
#ifndef LATTICE_RUNS_EVENT_FILE_H_
#define LATTICE_RUNS_EVENT_FILE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/append_file.h"

namespace lattice::runs {

// CRC-32C (Castagnoli) of `data`.
uint32_t Crc32c(std::string_view data);

// The file is a by-product, so write errors are ignored; what the disk refuses is written later.
class EventFile {
 public:
  // Creates `directory` if needed, opens a new file in it, and calls Restart().
  EventFile(const std::filesystem::path& directory, int64_t last_step);

  // Marks events of steps after `last_step` as outdated, including those of earlier files.
  void Restart(int64_t last_step);

  // Writes one event with a scalar for each (tag, value).
  void Write(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void Record(std::string_view event);

  std::optional<io::AppendFile> file_;  // none: it could not be created
};

}  // namespace lattice::runs

#endif  // LATTICE_RUNS_EVENT_FILE_H_
