// The conversion of a Transformer into models with memories (docs/distillation.md): the stages of every student as child
// processes, then a table and a figure of what they reached.
#ifndef LATTICE_REPRODUCE_CONVERSION_H_
#define LATTICE_REPRODUCE_CONVERSION_H_

#include <filesystem>
#include <string>
#include <vector>

#include "reproduce/runner.h"

namespace lattice::reproduce {

// One student of configs/conversion.json.
struct ConversionStudent {
  std::string name;
  std::string student;                // configuration
  std::vector<std::string> settings;  // section.key=value
  std::vector<std::string> stages;
};

struct ConversionPlan {
  std::string title;
  std::vector<int64_t> contexts;  // of the perplexities
  int64_t eval_tokens = 0;        // tokens of the held-out text that are evaluated
  std::vector<ConversionStudent> students;
};
ConversionPlan ReadConversionPlan(const std::filesystem::path& file);

struct ConversionOptions {
  std::filesystem::path teacher;      // a checkpoint
  std::filesystem::path data;         // a directory with train.txt and valid.txt
  std::filesystem::path out;          // OUT/<student>/<stage> are runs, OUT/conversion the results
  std::vector<std::string> settings;  // for every student
  int threads = 1;
};

// Makes the runs that are not done, one after the other. Stopped runs go on with the next call.
Outcome MakeConversion(const ConversionPlan& plan, const ConversionOptions& options,
                       const RunnerOptions& how);

// Writes results.json of what the runs in OUT have reached, finished or not, and draws it.
void WriteConversion(const ConversionPlan& plan, const ConversionOptions& options,
                     const std::string& command);

// Writes table.md and figure.svg of the results.json in a directory.
void DrawConversion(const std::filesystem::path& directory);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_CONVERSION_H_
