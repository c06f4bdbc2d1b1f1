// The program behind the launcher ./lattice. Exit code: 0 ok, 1 failed, 2 wrong use.
#include <malloc.h>

#include <limits>

#include "cli/program.h"

namespace lattice::cli {
namespace {

// Training allocates and frees the same large tensors in every step. By default glibc returns each to the
// system, and every step pays for the page faults again. The launcher sets the same for whatever it starts;
// this is for the program started directly. Measurements: docs/decisions.md.
void KeepFreedMemory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

int Run(int argc, char** argv) {
  CLI::App app("Lattice: a recurrent memory for sequence models, exact and fast on CPUs.", "./lattice");
  app.require_subcommand(1);
  Chosen chosen;
  AddDemo(app, chosen);
  AddTrain(app, chosen);
  AddDistill(app, chosen);
  AddGenerate(app, chosen);
  AddEval(app, chosen);
  AddMqar(app, chosen);
  AddInspect(app, chosen);
  AddImport(app, chosen);
  AddConvert(app, chosen);
  AddVerify(app, chosen);
  AddTokenizer(app, chosen);
  AddData(app, chosen);
  AddReport(app, chosen);
  AddPlot(app, chosen);
  AddReproduce(app, chosen);
  return RunProgram(app, chosen, argc, argv);
}

}  // namespace
}  // namespace lattice::cli

int main(int argc, char** argv) {
  lattice::cli::KeepFreedMemory();
  return lattice::cli::Run(argc, argv);
}
