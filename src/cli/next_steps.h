// What a person can do with a model that has just been trained.
#ifndef LATTICE_CLI_NEXT_STEPS_H_
#define LATTICE_CLI_NEXT_STEPS_H_

#include <filesystem>
#include <string>

namespace lattice::cli {

// The launcher of the tree that the program was built in, as it is called from the current directory:
// ./lattice, ../lattice, ... "./lattice" where there is none.
std::string Launcher();

// A word for the shell, in quotes where it needs them.
std::string ShellWord(const std::string& word);

// Commands that can be pasted where the user stands: generate, serve, inspect, and where the report is.
std::string NextSteps(const std::filesystem::path& run, const std::string& prompt);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_NEXT_STEPS_H_
