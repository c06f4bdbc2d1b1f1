// `lattice eval tasks`: zero-shot tasks.
#include <CLI/CLI.hpp>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/eval.h"
#include "cli/open_model.h"
#include "cli/progress_bar.h"
#include "eval/run_task.h"
#include "io/file.h"

namespace lattice::cli {
namespace {

struct EvalTasksFlags {
  std::string model;
  std::string tokenizer;
  std::vector<std::string> tasks = {"all"};
  std::string tasks_dir;
  std::string dump;
  std::string add_bos = "auto";
  eval::TaskFilter filter;
  eval::LikelihoodOptions likelihood;
  int64_t max_length = 0;
  bool no_share = false;
  bool paper = false;
  bool json = false;
};

constexpr int64_t kPaperHellaSwag = 3000;
constexpr size_t kShownProblems = 5;

struct Job {
  const eval::TaskInfo* task;
  eval::TaskFilter filter;
};

// Unknown names are refused as usage errors before anything is computed.
std::vector<Job> ChooseTasks(const EvalTasksFlags& options) {
  std::vector<Job> jobs;
  const auto add = [&](const eval::TaskInfo& task) {
    eval::TaskFilter filter = options.filter;
    if (options.paper) {
      filter.four_option_only = true;
      if (task.name == "hellaswag" && filter.limit == 0) filter.limit = kPaperHellaSwag;
    }
    jobs.push_back({&task, filter});
  };
  for (const std::string& name : options.tasks) {
    if (name != "all") {
      AsUsage([&] { add(eval::FindTask(name)); });
      continue;
    }
    for (const eval::TaskInfo& task : eval::Tasks()) {
      const bool dropped = options.paper && (task.name == "commonsense_qa" || task.name == "lambada_openai");
      if (!dropped) add(task);
    }
  }
  return jobs;
}

// For "auto": models of this project are trained without a beginning-of-text token, many others with one.
bool AddsBos(const EvalTasksFlags& options, const OpenedModel& model) {
  if (options.add_bos != "auto") return options.add_bos == "true";
  return model.tokenizer->special().starts_texts;
}

nlohmann::ordered_json ToJson(const eval::TaskResult& result, const std::string& file) {
  nlohmann::ordered_json out;
  for (const auto& [name, value] : result.figures) out[name] = value;
  out["n"] = result.items;
  out["skipped"] = result.bad.size();
  out["truncated"] = result.truncated;
  out["tokens"] = result.tokens;
  out["seconds"] = result.seconds;
  out["prepare_seconds"] = result.prepare_seconds;
  out["file"] = file;
  return out;
}

void ReportBad(const eval::TaskInfo& task, const std::vector<eval::BadItem>& bad) {
  for (size_t i = 0; i < std::min(bad.size(), kShownProblems); ++i)
    std::cerr << "lattice: [eval] " << task.name << ": skipped " << bad[i].problem << "\n";
  if (bad.size() > kShownProblems)
    std::cerr << "lattice: [eval] " << task.name << ": " << bad.size() << " items skipped in all\n";
}

std::string Percent(const nlohmann::ordered_json& result, const std::string& name) {
  if (!result.contains(name)) return "-";
  return Fixed(100 * result[name].get<double>(), 2) + " +- " +
         Fixed(100 * result[name + "_stderr"].get<double>(), 2);
}

void PrintTable(const nlohmann::ordered_json& results) {
  std::cout << std::left << std::setw(22) << "task" << std::right << std::setw(7) << "n" << std::setw(17)
            << "acc %" << std::setw(17) << "acc_norm %" << std::setw(14) << "perplexity"
            << "\n";
  for (const auto& [name, result] : results.items()) {
    std::cout << std::left << std::setw(22) << name << std::right << std::setw(7)
              << result["n"].get<int64_t>() << std::setw(17) << Percent(result, "acc") << std::setw(17)
              << Percent(result, "acc_norm") << std::setw(14)
              << (result.contains("perplexity") ? Short(result["perplexity"].get<double>(), 5) : "-") << "\n";
  }
}

// Runs the tasks one after the other; a task that fails is reported, and the others still run.
class TaskRunner {
 public:
  TaskRunner(const EvalTasksFlags& options, const OpenedModel& model)
      : options_(options), model_(model), scorer_(model.model, Likelihoods(options)) {
    if (!options.dump.empty()) dump_ = std::make_unique<io::AtomicFile>(options.dump);
  }

  void Run(const Job& job) {
    const eval::TaskInfo& task = *job.task;
    try {
      const std::filesystem::path file = eval::FindTaskFile(task, options_.tasks_dir);
      eval::TaskItems items = eval::ReadTask(task, file, job.filter);
      std::cerr << task.name << ": " << Grouped(static_cast<int64_t>(items.items.size())) << " items from "
                << file.string() << std::endl;
      const eval::TaskResult result = Evaluate(task, std::move(items));
      ReportBad(task, result.bad);
      Check(result.items > 0, "[eval] ", task.name, ": no item of ", file.string(), " has a result");
      results_[std::string(task.name)] = ToJson(result, file.string());
    } catch (const Error& error) {
      std::cerr << "lattice: " << error.what() << "\n";
      failed_ = true;
    }
  }

  int Finish() {
    if (dump_ != nullptr) dump_->Commit();
    if (results_.empty()) return 1;
    if (options_.json) {
      const nlohmann::ordered_json out = {{"model", model_.checkpoint.string()},
                                          {"mixer", model_.model->config().MixerText()},
                                          {"add_bos", AddsBos(options_, model_)},
                                          {"max_length", options_.max_length},
                                          {"results", results_}};
      std::cout << out.dump(2) << "\n";
    } else {
      PrintTable(results_);
    }
    return failed_ ? 1 : 0;
  }

 private:
  static eval::LikelihoodOptions Likelihoods(const EvalTasksFlags& options) {
    eval::LikelihoodOptions out = options.likelihood;
    out.share = !options.no_share;
    return out;
  }

  eval::TaskResult Evaluate(const eval::TaskInfo& task, eval::TaskItems items) {
    ProgressBar bar{std::string(task.name)};
    eval::TaskOptions how;
    how.add_bos = AddsBos(options_, model_);
    how.max_length = options_.max_length;
    how.progress = [&](int64_t done, int64_t total) { bar.Show(done, total); };
    if (dump_ != nullptr) {
      how.dump = [&](const nlohmann::ordered_json& line) {
        // Invalid UTF-8 is replaced, so that the line is not lost.
        dump_->Write(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
      };
    }
    return eval::RunTask(task, std::move(items), *model_.tokenizer, scorer_, how);
  }

  const EvalTasksFlags& options_;
  const OpenedModel& model_;
  eval::LikelihoodScorer scorer_;
  std::unique_ptr<io::AtomicFile> dump_;
  nlohmann::ordered_json results_ = nlohmann::ordered_json::object();
  bool failed_ = false;
};

int EvalTasks(const EvalTasksFlags& options) {
  const std::vector<Job> jobs = ChooseTasks(options);
  const OpenedModel model = OpenModel(options.model, {.tokenizer = options.tokenizer});
  TaskRunner runner(options, model);
  for (const Job& job : jobs) runner.Run(job);
  return runner.Finish();
}

std::string TaskList() {
  std::string out;
  for (const eval::TaskInfo& task : eval::Tasks()) out += " " + std::string(task.name);
  return out;
}

}  // namespace

void AddEvalTasks(CLI::App& eval, Chosen& chosen) {
  CLI::App* command = eval.add_subcommand("tasks", "Zero-shot tasks: accuracy of the likeliest answer");
  const auto options = std::make_shared<EvalTasksFlags>();
  AddPlugins(*command);
  command->add_option("--model", options->model, "run directory or checkpoint")->required();
  command->add_option("--tasks-dir", options->tasks_dir, "directory with the tasks' jsonl files")->required();
  command->add_option("--tasks", options->tasks, "names with commas between them, or all:" + TaskList())
      ->delimiter(',');
  command->add_option("--limit", options->filter.limit, "only the first items of each task; 0: all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  command->add_flag("--four-option-only", options->filter.four_option_only,
                    "of ARC only the questions with four answers");
  command->add_flag("--paper", options->paper,
                    "what the paper must have measured: ARC with four answers, 3,000 items of HellaSwag; "
                    "all then means its seven tasks, CommonsenseQA as cloze");
  command->add_option("--tokenizer", options->tokenizer, "instead of the checkpoint's own");
  command
      ->add_option("--add-bos", options->add_bos,
                   "begin with the beginning-of-text id; auto: as the model was trained")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "true", "false"}));
  command
      ->add_option("--max-length", options->max_length,
                   "tokens to read at most: longer contexts lose their start; 0: no limit")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  command->add_option("--batch", options->likelihood.batch, "items at a time; 0: what fits")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 16));
  command->add_flag("--no-share", options->no_share,
                    "read the context again for each answer: the same results, slower");
  command->add_option("--threads", options->likelihood.threads, "threads; default: all cores")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--json", options->json, "print JSON");
  command->add_option("--dump", options->dump, "write prompts and log-likelihoods of all items, as jsonl");
  command->footer(
      "Example: ./lattice eval tasks --model runs/book --tasks piqa,boolq --tasks-dir tasks --limit 100 "
      "--json --dump items.jsonl");
  command->callback([options, &chosen] { chosen = [options] { return EvalTasks(*options); }; });
}

}  // namespace lattice::cli
