// lattice-run: models without torch and without Python.
#include "cli/program.h"
#include "kernels/isa.h"

namespace {

// The program's version, and what it can do on this machine.
std::string Version() {
  std::string isas;
  for (const std::string& isa : lattice::kernels::AvailableIsas()) isas += " " + isa;
  return "lattice-run " LATTICE_VERSION ", instruction sets of this CPU:" + isas;
}

// The launcher starts this program under its own name, so that the help shows what users type.
bool StartedByLauncher(int argc, char** argv) { return argc > 0 && std::string_view(argv[0]) == "./lattice"; }

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs Lattice models: one small program, no torch, no Python.",
               StartedByLauncher(argc, argv) ? "./lattice" : "lattice-run");
  app.set_version_flag("--version", Version, "Print the version and the instruction sets of this CPU");
  app.require_subcommand(1);
  lattice::cli::Chosen chosen;
  lattice::cli::AddGenerate(app, chosen);
  lattice::cli::AddServe(app, chosen);
  lattice::cli::AddEval(app, chosen);
  lattice::cli::AddInspect(app, chosen);
  lattice::cli::AddImport(app, chosen);
  lattice::cli::AddConvert(app, chosen);
  lattice::cli::AddPlot(app, chosen);
  return lattice::cli::RunProgram(app, chosen, argc, argv);
}
