// The conversion of a Transformer into models with memories (docs/distillation.md): the stages of every student as child
// processes, then a table and a figure of what they reached.
#ifndef LATTICE_REPRODUCE_CONVERSION_H_
#define LATTICE_REPRODUCE_CONVERSION_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reproduce/distill_runs.h"
#include "reproduce/runner.h"

namespace lattice::reproduce {

// A held-out text on which models are measured, in windows of `context` tokens.
struct ConversionText {
  std::string name;
  std::string corpus;  // DATA/<corpus>_valid.txt
  int64_t context = 0, tokens = 0;
};

// One student of configs/conversion.json.
struct ConversionStudent {
  std::string name;
  std::string student;                // configuration
  std::vector<std::string> settings;  // section.key=value
  std::vector<std::string> stages;
  std::vector<std::string> texts;  // besides the first, on which it is measured behind its last stage
  bool tasks = false;              // whether the zero-shot tasks are run on it
  std::map<std::string, std::vector<std::string>> of_stage;  // settings of its own, by the stage's name
};

struct ConversionPlan {
  std::string title;
  DistillText text;
  std::vector<ConversionText> texts;
  std::map<std::string, double> tasks;                       // zero-shot, with the accuracy of a guess
  int64_t task_items = 0;                                    // of each
  std::map<std::string, std::vector<std::string>> of_stage;  // settings by the stage's name
  std::vector<ConversionStudent> students;
};
ConversionPlan ReadConversionPlan(const std::filesystem::path& file);

// OUT/<student>/<stage> are runs, OUT/conversion the results.
//
// Makes what is not done, one after the other: the first stage of every student, then the second stages, each with its
// perplexity on the first text, then the other texts, then the tasks, so that a comparison is complete as early as it can
// be. Stopped runs go on with the next call.
Outcome MakeConversion(const ConversionPlan& plan, const DistillOptions& options, const RunnerOptions& how);

// Writes results.json of what the runs in OUT have reached, finished or not, and draws it. Students that have no run in OUT,
// and texts on which the teacher was not measured, keep what an earlier results.json there says of them, so that one student
// can be made again without the others.
void WriteConversion(const ConversionPlan& plan, const DistillOptions& options, const std::string& command);

// Writes table.md and figure.svg of the results.json in a directory.
void DrawConversion(const std::filesystem::path& directory);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_CONVERSION_H_
