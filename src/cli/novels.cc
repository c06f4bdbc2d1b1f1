#include "cli/novels.h"

#include <system_error>
#include <vector>

#include "base/error.h"

namespace lattice::cli {

namespace fs = std::filesystem;

fs::path FindNovels() {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  std::vector<fs::path> starts = {fs::current_path()};
  for (fs::path at = program.parent_path(); at.has_relative_path(); at = at.parent_path())
    starts.push_back(at);
  for (const fs::path& start : starts) {
    if (fs::is_directory(start / "data" / "austen" / "train")) return start / "data" / "austen";
  }
  Fail("[data] cannot find data/austen; run this from the project's directory");
}

}  // namespace lattice::cli
