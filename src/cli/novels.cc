#include "cli/novels.h"

#include "base/error.h"
#include "io/project_files.h"

namespace lattice::cli {

namespace fs = std::filesystem;

fs::path FindInTree(const fs::path& path) {
  const fs::path found = io::FindProjectFile(path);
  Check(!found.empty(), "cannot find ", path.string(), "; run this from the project's directory");
  return found;
}

fs::path FindNovels() { return FindInTree("data/austen/train").parent_path(); }

}  // namespace lattice::cli
