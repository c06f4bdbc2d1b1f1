// What the subcommands of `lattice` share. Each has a file of its own with a function that adds it to the
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

// The program was called wrongly: exit code 2. Every other Error is 1.
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

// Set by the subcommand that was chosen; runs after the whole command line has been read. Returns the exit
// code.
using Chosen = std::function<int()>;

// The option --plugin of a command that opens or trains models; LoadPlugins loads what it was given.
void AddPlugins(CLI::App& command);
void LoadPlugins();

void AddTrain(CLI::App& app, Chosen& chosen);
void AddGenerate(CLI::App& app, Chosen& chosen);
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

}  // namespace lattice::cli

#endif  // LATTICE_CLI_COMMAND_H_
