// lattice-run: models without torch and without Python.
#include "cli/program.h"

namespace {

// The launcher starts this program under its own name, so that the help shows what users type.
bool StartedByLauncher(int argc, char** argv) { return argc > 0 && std::string_view(argv[0]) == "./lattice"; }

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs Lattice models: one small program, no torch, no Python.",
               StartedByLauncher(argc, argv) ? "./lattice" : "lattice-run");
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
