// The interface of the subcommands of `lattice`. Each is one file with a function that adds it to the
// program.
#ifndef LATTICE_CLI_COMMAND_H_
#define LATTICE_CLI_COMMAND_H_

#include <functional>
#include <string>

#include "base/error.h"

namespace CLI {
class App;
}

namespace lattice::cli {

// The command line is wrong: exit code 2. For every other Error it is 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Runs `action`; an Error it throws becomes a UsageError.
template <typename Action>
auto AsUsage(Action&& action) {
  try {
    return action();
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

// The action of the chosen subcommand, run after the whole command line has been parsed. Returns the exit
// code.
using Chosen = std::function<int()>;

// AddPlugins adds the option --plugin, for commands that open or train models; LoadPlugins loads the plug-ins
// that were named.
void AddPlugins(CLI::App& command);
void LoadPlugins();

void AddTrain(CLI::App& app, Chosen& chosen);
void AddGenerate(CLI::App& app, Chosen& chosen);
void AddImport(CLI::App& app, Chosen& chosen);
void AddConvert(CLI::App& app, Chosen& chosen);
void AddServe(CLI::App& app, Chosen& chosen);
void AddEval(CLI::App& app, Chosen& chosen);
void AddMqar(CLI::App& app, Chosen& chosen);
void AddInspect(CLI::App& app, Chosen& chosen);
void AddTokenizer(CLI::App& app, Chosen& chosen);
void AddData(CLI::App& app, Chosen& chosen);
void AddPlot(CLI::App& app, Chosen& chosen);
void AddReport(CLI::App& app, Chosen& chosen);
void AddReproduce(CLI::App& app, Chosen& chosen);
void AddVerify(CLI::App& app, Chosen& chosen);
void AddDemo(CLI::App& app, Chosen& chosen);
void AddDistill(CLI::App& app, Chosen& chosen);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_COMMAND_H_
