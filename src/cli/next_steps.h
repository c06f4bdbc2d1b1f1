// Suggests commands for a model that has just been trained.
#ifndef LATTICE_CLI_NEXT_STEPS_H_
#define LATTICE_CLI_NEXT_STEPS_H_

#include <filesystem>
#include <string>

namespace lattice::cli {

// The path from the current directory to the launcher of the tree that the program was built in: ./lattice,
// ../lattice, ... If there is none, how the program was started.
std::string Launcher();

// A word for the shell, quoted if necessary.
std::string ShellWord(const std::string& word);

// Commands that can be pasted in the current directory (generate, serve, inspect), and the path of the
// report.
std::string NextSteps(const std::filesystem::path& run, const std::string& prompt);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_NEXT_STEPS_H_
