// --plugin: loads user-defined memories from shared libraries.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "kernels/plugin.h"

namespace lattice::cli {
namespace {

std::vector<std::string>& Paths() {
  static std::vector<std::string> paths;
  return paths;
}

}  // namespace

void AddPlugins(CLI::App& command) {
  command.add_option("--plugin", Paths(),
                     "shared library with a memory of your own, whose code is run; may be repeated");
}

void LoadPlugins() {
  for (const std::string& path : Paths()) kernels::LoadMemory(path);
}

}  // namespace lattice::cli
