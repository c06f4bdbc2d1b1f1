#include "io/project_files.h"

#include <system_error>
#include <vector>

namespace lattice::io {

namespace fs = std::filesystem;

fs::path FindProjectFile(const fs::path& path) {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  std::vector<fs::path> starts = {fs::current_path()};
  for (fs::path at = program.parent_path(); at.has_relative_path(); at = at.parent_path()) {
    starts.push_back(at);
    starts.push_back(at / "share" / "lattice");
  }
  for (const fs::path& start : starts) {
    if (fs::exists(start / path, unknown)) return start / path;
  }
  return {};
}

}  // namespace lattice::io
