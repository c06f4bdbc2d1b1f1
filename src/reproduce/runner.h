// Executes runs as child processes of this program, several at a time.
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
  std::function<bool()> stop;                      // polled several times a second
  std::function<void(const std::string&)> report;  // a line of progress
};

// Executes all runs that are not done. When `stop` returns true, the children get SIGTERM, save and end, and
// the same call resumes them later; they also end when this process dies. A run whose loss became not finite
// counts as done and diverged. Any other failure is reported, the other runs continue, and the outcome is
// kFailed.
Outcome MakeRuns(const RunStore& store, const std::vector<Run>& runs, const RunnerOptions& options);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_RUNNER_H_
