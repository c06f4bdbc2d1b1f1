// Makes runs by child processes of this very program, several at a time.
#ifndef LATTICE_REPRODUCE_RUNNER_H_
#define LATTICE_REPRODUCE_RUNNER_H_

#include <functional>
#include <string>
#include <vector>

#include "reproduce/run_store.h"

namespace lattice::reproduce {

enum class Outcome { kDone, kStopped, kFailed };

struct RunnerOptions {
  int jobs = 1;
  std::function<bool()> stop;                      // asked several times a second
  std::function<void(const std::string&)> report;  // a line of progress
};

// Makes all runs that are not done. When `stop` says so, the children get SIGTERM, save and end, and the same
// call goes on later; they also end when this process dies. A run whose loss did not stay finite counts as
// done and diverged; any other failure is reported, the rest still runs, and the outcome is kFailed.
Outcome MakeRuns(const RunStore& store, const std::vector<Run>& runs, const RunnerOptions& options);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_RUNNER_H_
