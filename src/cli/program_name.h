// How users start this program, for the commands that help texts and errors suggest.
#ifndef LATTICE_CLI_PROGRAM_NAME_H_
#define LATTICE_CLI_PROGRAM_NAME_H_

#include <string>
#include <string_view>

namespace lattice::cli {

// Texts name the launcher of the source tree, "./lattice". A program that was started by a plain name, as the shell
// finds an installed one, is that name.
void SetProgramName(std::string_view argv0);
const std::string& ProgramName();

// `text` with "./lattice" replaced by the name where it begins a command.
std::string WithProgramName(std::string text);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_PROGRAM_NAME_H_
