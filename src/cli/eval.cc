#include "cli/eval.h"

#include <CLI/CLI.hpp>

namespace lattice::cli {

void AddEval(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("eval", "Measure a trained model: zero-shot tasks, perplexity");
  command->require_subcommand(1);
  command->footer("Example: ./lattice eval tasks --model runs/book --tasks piqa,boolq --tasks-dir tasks");
  AddEvalTasks(*command, chosen);
  AddEvalPpl(*command, chosen);
}

}  // namespace lattice::cli
