// Executes runs as child processes of this program, several at a time.
#ifndef LATTICE_REPRODUCE_RUNNER_H_
#define LATTICE_REPRODUCE_RUNNER_H_

#include <functional>
#include <string>
#include <vector>

#include "reproduce/claims.h"
#include "reproduce/run_store.h"

namespace lattice::reproduce {

enum class Outcome { kDone, kStopped, kFailed };

struct RunnerOptions {
  int jobs = 1;
  std::function<bool()> stop;                      // polled several times a second
  std::function<void(const std::string&)> report;  // a line of progress
  // Other processes make runs of the same list: each is made by the one that holds its claim.
  Claims* claims = nullptr;
};

// Executes all runs that are not done; with claims, waits for those that others make. When `stop` returns true, the children get SIGTERM, save and end, and
// the same call resumes them later; they also end when this process dies. A run whose loss became not finite
// counts as done and diverged. Any other failure is reported, the other runs continue, and the outcome is
// kFailed.
Outcome MakeRuns(const RunStore& store, const std::vector<Run>& runs, const RunnerOptions& options);

// Executes one command, with its errors in a file, and waits for it; `options.stop` ends it as above. A failure is
// reported with the last line of the errors.
Outcome RunCommand(const Command& command, const std::filesystem::path& errors, const RunnerOptions& options);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_RUNNER_H_
