// The program behind the launcher ./lattice. Exit code: 0 ok, 1 failed, 2 wrong use.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <new>
#include <string_view>

#include "cli/command.h"

namespace lattice::cli {
namespace {

// Training allocates and frees the same large tensors again and again; by default glibc gives each back to
// the system, and every step pays for the page faults. Figures: docs/decisions.md.
void KeepFreedMemory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

// torch's messages carry a stack trace behind the first line.
int Report(std::string_view what, int code) {
  std::cerr << "lattice: " << what.substr(0, what.find("\nException raised from")) << "\n";
  return code;
}

int Run(int argc, char** argv) {
  CLI::App app("Lattice: a recurrent memory for sequence models, exact and fast on CPUs.", "./lattice");
  app.require_subcommand(1);
  Chosen chosen;
  AddDemo(app, chosen);
  AddTrain(app, chosen);
  AddGenerate(app, chosen);
  AddInspect(app, chosen);
  AddTokenizer(app, chosen);
  AddData(app, chosen);
  AddReport(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return chosen();
  } catch (const UsageError& error) {
    return Report(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return Report("out of memory; try a smaller train.micro_batch, or train.recompute=true", 1);
  } catch (const std::exception& error) {
    return Report(error.what(), 1);
  }
}

}  // namespace
}  // namespace lattice::cli

int main(int argc, char** argv) {
  lattice::cli::KeepFreedMemory();
  return lattice::cli::Run(argc, argv);
}
