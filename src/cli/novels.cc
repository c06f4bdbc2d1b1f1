#include "cli/novels.h"

#include <system_error>
#include <vector>

#include "base/error.h"

namespace lattice::cli {

namespace fs = std::filesystem;

fs::path FindInTree(const fs::path& path) {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  std::vector<fs::path> starts = {fs::current_path()};
  for (fs::path at = program.parent_path(); at.has_relative_path(); at = at.parent_path())
    starts.push_back(at);
  for (const fs::path& start : starts) {
    if (fs::exists(start / path)) return start / path;
  }
  Fail("cannot find ", path.string(), "; run this from the project's directory");
}

fs::path FindNovels() { return FindInTree("data/austen/train").parent_path(); }

}  // namespace lattice::cli
