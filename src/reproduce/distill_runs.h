// Runs of `lattice distill` as child processes: the text they learn from, their command, and what they have logged.
#ifndef LATTICE_REPRODUCE_DISTILL_RUNS_H_
#define LATTICE_REPRODUCE_DISTILL_RUNS_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reproduce/run_store.h"

namespace lattice::reproduce {

// The text of an experiment with a teacher: the beginnings of corpora, `bytes` of each.
struct DistillText {
  std::vector<std::string> corpora;
  int64_t bytes = 0;
};

// What every run of such an experiment shares.
struct DistillOptions {
  std::filesystem::path teacher;  // a checkpoint
  std::filesystem::path data;     // a directory with the corpora
  std::filesystem::path out;      // directory of runs and results
  std::filesystem::path tasks;  // a directory with the zero-shot tasks' jsonl files; empty: they are left out
  std::vector<std::string> settings;  // section.key=value, for every run; before them come those of the run
  int threads = 1;
  std::vector<std::string> only;  // the names of the students or memories to make; empty: all
};

// Of the object of a plan: "corpora" and "train_bytes". `source` names its file in errors.
DistillText ReadDistillText(const nlohmann::json& plan, const std::string& source);

// Writes OUT/<name>/results.json: the title and the command, where and from which commit it was made, then the
// members of `figures`. Returns the directory.
std::filesystem::path WriteDistillResults(const DistillOptions& options, const std::string& name,
                                          const std::string& title, const std::string& command,
                                          const nlohmann::ordered_json& figures);

// Whether the student or memory of that name is to be made.
bool Chosen(const DistillOptions& options, const std::string& name);
// Throws Error when `only` has a name that is not among those of the plan.
void CheckChosen(const DistillOptions& options, const std::vector<std::string>& names);

// A name as that of a directory.
std::string FileName(const std::string& name);

// The command of one stage, into RUN/<stage>. It takes what the teacher computes from a cache in OUT. Settings are
// section.key=value, or options of `lattice distill` such as --learn=new.
Command DistillCommand(const DistillOptions& options, const DistillText& text, const std::string& student,
                       const std::filesystem::path& run, const std::string& stage,
                       const std::vector<std::string>& settings);

// The lines of metrics.jsonl of a stage; none when it has not begun.
std::vector<nlohmann::json> MetricsOf(const std::filesystem::path& run, const std::string& stage);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_DISTILL_RUNS_H_
