// The results of runs in a directory: OUT/runs/<id>.json for a finished run, OUT/work/<id> for an unfinished
// one.
#ifndef LATTICE_REPRODUCE_RUN_STORE_H_
#define LATTICE_REPRODUCE_RUN_STORE_H_

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reproduce/corpus.h"
#include "reproduce/plan.h"

namespace lattice::reproduce {

// A process to start: its arguments after the program, and the file for its standard output.
struct Command {
  std::vector<std::string> args;
  std::filesystem::path output;
};

struct StoreOptions {
  std::filesystem::path out;
  Corpus corpus;
  std::filesystem::path tasks;  // directory of the zero-shot tasks
  int64_t task_limit = 0;       // items of each; 0: all
  int threads = 1;
  std::filesystem::path tokenizer = {};  // of runs with pieces
};

class RunStore {
 public:
  explicit RunStore(StoreOptions options) : options_(std::move(options)) {}

  bool IsDone(const Run& run) const;
  // The contents of runs/<id>.json. Throws Error when the run is not done or the file is damaged.
  nlohmann::json Result(const Run& run) const;
  // For MakePlan().
  std::optional<double> Figure(const Run& run, const std::string& figure) const;

  // The commands that make the run, in order; they resume an interrupted run.
  std::vector<Command> Commands(const Run& run) const;
  // The first of them without this machine's paths, so that others can repeat it.
  std::string ShownCommand(const Run& run) const;
  // The directory of the unfinished run.
  std::filesystem::path Work(const Run& run) const;

  // Reads the output of the commands, writes runs/<id>.json and removes the work directory. `diverged` is the
  // error message of a run whose loss became not finite, otherwise empty. Throws Error when a figure is
  // missing.
  void Finish(const Run& run, const std::string& diverged) const;

  const StoreOptions& options() const { return options_; }

 private:
  std::filesystem::path ResultFile(const Run& run) const;
  nlohmann::json Figures(const Run& run) const;

  StoreOptions options_;
};

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_RUN_STORE_H_
