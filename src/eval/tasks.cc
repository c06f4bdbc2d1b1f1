// The list of zero-shot tasks, and reading their files.
#include "eval/tasks.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/nearest.h"
#include "eval/prompts.h"
#include "eval/python_text.h"
#include "io/file.h"
#include "io/json.h"

namespace lattice::eval {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string_view>;

const Names kValidation = {"_val", "_validation", "_dev", "_valid", ""};
const Names kTest = {"_test", ""};

std::vector<TaskInfo> MakeTasks() {
  return {
      {.name = "piqa", .stems = {"piqa"}, .splits = kValidation, .build = BuildPiqa},
      {.name = "hellaswag", .stems = {"hellaswag"}, .splits = kValidation, .build = BuildHellaSwag},
      {.name = "winogrande",
       .stems = {"winogrande_xl", "winogrande"},
       .splits = kValidation,
       .build = BuildWinoGrande},
      {.name = "arc_easy",
       .stems = {"arc_easy"},
       .splits = kTest,
       .build = BuildQuestionText,
       .questions_of_science = true},
      {.name = "arc_challenge",
       .stems = {"arc_challenge"},
       .splits = kTest,
       .build = BuildQuestionText,
       .questions_of_science = true},
      {.name = "commonsense_qa",
       .stems = {"commonsense_qa"},
       .splits = kValidation,
       .build = BuildQuestionLetters},
      {.name = "commonsense_qa_cloze",
       .stems = {"commonsense_qa"},
       .splits = kValidation,
       .build = BuildQuestionText},
      {.name = "boolq", .stems = {"boolq"}, .splits = kValidation, .build = BuildBoolQ},
      {.name = "lambada_openai",
       .stems = {"lambada_openai", "lambada"},
       .splits = kTest,
       .build = BuildLambada,
       .choices = false},
  };
}

bool Wanted(const TaskInfo& task, const TaskFilter& filter, const Item& item) {
  return !task.questions_of_science || !filter.four_option_only || item.requests.size() == 4;
}

}  // namespace

std::span<const TaskInfo> Tasks() {
  static const std::vector<TaskInfo> tasks = MakeTasks();
  return tasks;
}

const TaskInfo& FindTask(std::string_view name) {
  if (name == "lambada") name = "lambada_openai";
  Names names;
  for (const TaskInfo& task : Tasks()) {
    if (task.name == name) return task;
    names.push_back(task.name);
  }
  std::string all;
  for (const std::string_view each : names) all += (all.empty() ? "" : ", ") + std::string(each);
  Fail("[eval] there is no task \"", name, "\"", DidYouMean(name, names), " There are: ", all);
}

fs::path FindTaskFile(const TaskInfo& task, const fs::path& directory) {
  Check(fs::is_directory(directory), "[eval] there is no directory ", directory.string(),
        "; pass the one with the tasks' jsonl files as --tasks-dir");
  std::string tried;
  for (const std::string_view stem : task.stems) {
    for (const std::string_view split : task.splits) {
      const std::string name = StrCat(stem, split, ".jsonl");
      if (fs::is_regular_file(directory / name)) return directory / name;
      tried += (tried.empty() ? "" : ", ") + name;
    }
  }
  Fail("[eval] ", task.name, ": there is no file for it in ", directory.string(), "; looked for ", tried);
}

TaskItems ReadTask(const TaskInfo& task, const fs::path& file, const TaskFilter& filter) {
  TaskItems out{file, {}, {}};
  const std::string content = io::ReadFile(file);
  std::string_view rest = content;
  int64_t index = 0;
  for (int64_t line = 1; !rest.empty(); ++line) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (Strip(text).empty()) continue;
    if (filter.limit > 0 && static_cast<int64_t>(out.items.size()) >= filter.limit) break;
    Item item;
    item.index = index++;
    item.line = line;
    const std::string where = StrCat(file.string(), ":", line);
    try {
      task.build(io::ParseJson(text, where), item);
      if (Wanted(task, filter, item)) out.items.push_back(std::move(item));
    } catch (const Error& error) {
      const std::string_view what = error.what();
      out.bad.push_back({item.index, what.find(where) == std::string_view::npos ? StrCat(where, ": ", what)
                                                                                : std::string(what)});
    }
  }
  Check(index > 0, "[eval] ", task.name, ": ", file.string(), " is empty; expected one JSON object a line");
  return out;
}

}  // namespace lattice::eval
