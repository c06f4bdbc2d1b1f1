#include "cli/program_name.h"

namespace lattice::cli {
namespace {

constexpr std::string_view kLauncher = "./lattice";

std::string& Name() {
  static std::string name(kLauncher);
  return name;
}

}  // namespace

void SetProgramName(std::string_view argv0) {
  Name() = argv0.empty() || argv0.find('/') != argv0.npos ? kLauncher : argv0;
}

const std::string& ProgramName() { return Name(); }

std::string WithProgramName(std::string text) {
  if (Name() == kLauncher) return text;
  // A path such as "/data/./lattice run" or "./lattice/run" is not a command.
  for (size_t at = 0; (at = text.find(kLauncher, at)) != text.npos;) {
    const size_t end = at + kLauncher.size();
    const bool begins =
        at == 0 || std::string_view(" \n\t`'\"(").find(text[at - 1]) != std::string_view::npos;
    if (begins && (end == text.size() || text[end] == ' ')) {
      text.replace(at, kLauncher.size(), Name());
      at += Name().size();
    } else {
      at = end;
    }
  }
  return text;
}

}  // namespace lattice::cli
