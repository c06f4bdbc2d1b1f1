// The zero-shot tasks: their files, and how an item becomes a prompt. docs/evaluation.md has the definitions
// with examples.
#ifndef LATTICE_EVAL_TASKS_H_
#define LATTICE_EVAL_TASKS_H_

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/item.h"

namespace lattice::eval {

struct TaskInfo {
  std::string_view name;
  // The file is the first existing DIRECTORY/<stem><split>.jsonl.
  std::vector<std::string_view> stems = {};
  std::vector<std::string_view> splits = {};
  // Builds the prompts of one item. Throws Error that names the field which is missing or wrong.
  void (*build)(const nlohmann::json& object, Item& item);
  bool choices = true;  // false: one continuation, scored by whether greedy decoding produces it
  bool questions_of_science = false;  // ARC: four_option_only applies
};

std::span<const TaskInfo> Tasks();
// Throws Error with the nearest name when there is no such task.
const TaskInfo& FindTask(std::string_view name);

// Throws Error that lists the file names that were tried.
std::filesystem::path FindTaskFile(const TaskInfo& task, const std::filesystem::path& directory);

struct TaskFilter {
  int64_t limit = 0;  // the first items only; 0: all
  // Of ARC only the questions with four answers (2,365 of 2,376 easy ones, 1,165 of 1,172 hard ones).
  bool four_option_only = false;
};

struct TaskItems {
  std::filesystem::path file;
  std::vector<Item> items;
  std::vector<BadItem> bad;
};

// Reads a file of JSON lines. A bad line becomes a BadItem; an empty file is an Error.
TaskItems ReadTask(const TaskInfo& task, const std::filesystem::path& file, const TaskFilter& filter);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_TASKS_H_
