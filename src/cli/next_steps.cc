#include "cli/next_steps.h"

#include <system_error>

#include "base/error.h"
#include "cli/program_name.h"
#include "runs/report.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;

// The tree that the program was built in; empty when it was installed elsewhere.
fs::path Tree() {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  for (fs::path at = program.parent_path(); at.has_relative_path(); at = at.parent_path()) {
    if (fs::is_regular_file(at / "lattice", unknown) && fs::is_directory(at / "tools/launcher", unknown))
      return at;
  }
  return {};
}

}  // namespace

std::string ShellWord(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=+:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string Launcher() {
  const fs::path tree = Tree();
  if (tree.empty()) return ProgramName();
  std::error_code failed;
  const std::string path = fs::proximate(tree / "lattice", failed).string();
  return ShellWord(path.find('/') == std::string::npos ? "./" + path : path);
}

std::string NextSteps(const fs::path& run, const std::string& prompt) {
  const std::string launcher = Launcher(), model = ShellWord(run.string()), text = ShellWord(prompt);
  return StrCat("  ", launcher, " generate --model ", model, " --prompt ", text, "\n",  //
                "  ", launcher, " serve --model ", model,
                "    # a page with its memory at work, http://localhost:8080\n", "  ", launcher, " inspect ",
                model, " --text ", text, " --html memory.html\n",
                "The report of the run: ", (run / runs::kReportFile).string(), "\n");
}

}  // namespace lattice::cli
