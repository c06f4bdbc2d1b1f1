// The common main of `lattice` and `lattice-run`. Exit code: 0 ok, 1 failed, 2 wrong use.
#ifndef LATTICE_CLI_PROGRAM_H_
#define LATTICE_CLI_PROGRAM_H_

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <new>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/program_name.h"

namespace lattice::cli {

// Prints an error, without the stack trace that torch appends to its messages.
inline int Report(std::string_view what, int code) {
  std::cerr << "lattice: "
            << WithProgramName(std::string(what.substr(0, what.find("\nException raised from")))) << "\n";
  return code;
}

// The examples below the help of `app` and all its subcommands, for the program as it was started.
inline void NameInHelp(CLI::App& app) {
  app.footer(WithProgramName(app.get_footer()));
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) NameInHelp(*command);
}

// Parses the command line of `app` and runs the chosen subcommand.
inline int RunProgram(CLI::App& app, const Chosen& chosen, int argc, char** argv) {
  // A write beyond `ulimit -f` is then an error like that of a full disk, and not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  SetProgramName(argc > 0 ? argv[0] : "");
  if (ProgramName().find('/') == std::string::npos) app.name(ProgramName());
  NameInHelp(app);
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
