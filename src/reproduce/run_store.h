// The results of runs in a directory: OUT/runs/<id>.json once a run is done, OUT/work/<id> while it is not.
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

// A process to start: its arguments after the program, and the file its standard output goes to.
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
};

class RunStore {
 public:
  explicit RunStore(StoreOptions options) : options_(std::move(options)) {}

  bool IsDone(const Run& run) const;
  // What is in runs/<id>.json. Throws Error when the run is not done or the file is damaged.
  nlohmann::json Result(const Run& run) const;
  // For MakePlan().
  std::optional<double> Figure(const Run& run, const std::string& figure) const;

  // What makes the run, one after the other, going on where it was interrupted.
  std::vector<Command> Commands(const Run& run) const;
  // The first of them as others can repeat it, without this machine's paths.
  std::string ShownCommand(const Run& run) const;
  // Directory of the unfinished run.
  std::filesystem::path Work(const Run& run) const;

  // Reads what the commands left, writes runs/<id>.json and removes the work. `diverged` is the message of a
  // run whose loss did not stay finite, empty for a whole one. Throws Error when a figure is missing.
  void Finish(const Run& run, const std::string& diverged) const;

  const StoreOptions& options() const { return options_; }

 private:
  std::filesystem::path ResultFile(const Run& run) const;
  nlohmann::json Figures(const Run& run) const;

  StoreOptions options_;
};

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_RUN_STORE_H_
