// Runs a zero-shot task and computes its metrics.
#ifndef LATTICE_EVAL_RUN_TASK_H_
#define LATTICE_EVAL_RUN_TASK_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "eval/likelihood.h"
#include "eval/tasks.h"
#include "text/tokenizer.h"

namespace lattice::eval {

struct TaskOptions {
  bool add_bos = false;
  int64_t max_length = 0;  // longest input in tokens; longer contexts lose their start. 0: no limit
  std::function<void(int64_t done, int64_t total)> progress = {};     // may be empty
  std::function<void(const nlohmann::ordered_json& line)> dump = {};  // called once per item; may be empty
};

struct TaskResult {
  std::vector<std::pair<std::string, double>> figures;  // acc, acc_stderr, acc_norm, ... in this order
  int64_t items = 0;                                    // items with a result
  int64_t truncated = 0;                                // of them, items whose context lost its start
  int64_t tokens = 0;                                   // tokens that the model has read
  double seconds = 0;
  double prepare_seconds = 0;  // of them, spent before the model had work
  std::vector<BadItem> bad;    // in order of the file
};

// Items that cannot be scored are listed in `bad`; they are never fatal.
TaskResult RunTask(const TaskInfo& task, TaskItems read, const text::Tokenizer& tokenizer,
                   LikelihoodScorer& scorer, const TaskOptions& options);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_RUN_TASK_H_
