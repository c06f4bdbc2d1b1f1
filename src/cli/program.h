// The common main of `lattice` and `lattice-run`. Exit code: 0 ok, 1 failed, 2 wrong use.
#ifndef LATTICE_CLI_PROGRAM_H_
#define LATTICE_CLI_PROGRAM_H_

#include <CLI/CLI.hpp>
#include <iostream>
#include <new>
#include <string_view>

#include "cli/command.h"

namespace lattice::cli {

// Prints an error, without the stack trace that torch appends to its messages.
inline int Report(std::string_view what, int code) {
  std::cerr << "lattice: " << what.substr(0, what.find("\nException raised from")) << "\n";
  return code;
}

// Parses the command line of `app` and runs the chosen subcommand.
inline int RunProgram(CLI::App& app, const Chosen& chosen, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    LoadPlugins();
    return chosen();
  } catch (const UsageError& error) {
    return Report(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return Report("out of memory; try a smaller train.micro_batch, or train.recompute=true", 1);
  } catch (const std::exception& error) {
    return Report(error.what(), 1);
  }
}

}  // namespace lattice::cli

#endif  // LATTICE_CLI_PROGRAM_H_
