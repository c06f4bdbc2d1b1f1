// The parts of `lattice eval`, one file each.
#ifndef LATTICE_CLI_EVAL_H_
#define LATTICE_CLI_EVAL_H_

#include "cli/command.h"

namespace lattice::cli {

void AddEvalTasks(CLI::App& eval, Chosen& chosen);
void AddEvalPpl(CLI::App& eval, Chosen& chosen);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_EVAL_H_
