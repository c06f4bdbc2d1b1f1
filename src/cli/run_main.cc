// lattice-run: models without torch and without Python.
#include "cli/program.h"

int main(int argc, char** argv) {
  CLI::App app("Runs Lattice models: one small program, no torch, no Python.", "lattice-run");
  app.require_subcommand(1);
  lattice::cli::Chosen chosen;
  lattice::cli::AddGenerate(app, chosen);
  lattice::cli::AddServe(app, chosen);
  lattice::cli::AddServeBench(app, chosen);
  lattice::cli::AddEval(app, chosen);
  lattice::cli::AddInspect(app, chosen);
  lattice::cli::AddConvert(app, chosen);
  lattice::cli::AddDecodeBench(app, chosen);
  return lattice::cli::RunProgram(app, chosen, argc, argv);
}
