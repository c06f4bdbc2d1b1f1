// Which memory can stand in for attention (docs/distillation.md): every memory learns to give what single attention layers
// of a Transformer give, from the Transformer's hidden states, with equal projections and a state of equal size.
#ifndef LATTICE_REPRODUCE_IMITATION_H_
#define LATTICE_REPRODUCE_IMITATION_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "reproduce/distill_runs.h"
#include "reproduce/runner.h"

namespace lattice::reproduce {

// configs/imitation.json. A run is one memory with one seed: all layers learn in it, each by itself.
struct ImitationPlan {
  std::string title;
  DistillText text;
  std::vector<int64_t> layers;  // of the teacher; those it does not have stand for its last
  std::vector<int64_t> seeds;   // of the order of the text and of initial values
  std::string student;          // configuration of everything but the mixers
  std::vector<std::string> settings;
  struct Memory {
    std::string name, mixer;
  };
  std::vector<Memory> memories;
};
ImitationPlan ReadImitationPlan(const std::filesystem::path& file);

// Makes the runs that are not done, all memories with the first seed before the second. Stopped runs go on with the next
// call.
Outcome MakeImitation(const ImitationPlan& plan, const DistillOptions& options, const RunnerOptions& how);

// Writes OUT/imitation/results.json of what the runs have reached, finished or not, and draws it.
void WriteImitation(const ImitationPlan& plan, const DistillOptions& options, const std::string& command);

// Writes table.md and figure.svg of the results.json in a directory.
void DrawImitation(const std::filesystem::path& directory);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_IMITATION_H_
