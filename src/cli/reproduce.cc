#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/command.h"
#include "cli/novels.h"
#include "reproduce/runner.h"
#include "train/run_directory.h"
#include "train/stop_signal.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;
using reproduce::Experiment;

struct Options {
  std::vector<std::string> what;
  std::string scale = "laptop";
  std::string data, out, tasks;
  std::vector<std::string> overrides;
  int64_t task_limit = 0;
  int jobs = 0;
  bool dry_run = false;
};

class Reproduction {
 public:
  Reproduction(const Options& options, const Experiment& experiment)
      : options_(options), experiment_(experiment), store_(MakeStore(options, experiment)) {}

  reproduce::Plan Plan() const {
    return reproduce::MakePlan(
        experiment_, store_.options().corpus.fingerprint, options_.overrides,
        [&](const reproduce::Run& run, const std::string& figure) { return store_.Figure(run, figure); });
  }

  // The learning rates first; their results say what the other runs are.
  reproduce::Outcome Run(const std::function<bool()>& stop) const {
    const reproduce::RunnerOptions how{Jobs(), stop, [&](const std::string& line) {
                                         std::cerr << experiment_.name << " " << line << std::endl;
                                       }};
    reproduce::Outcome outcome = reproduce::Outcome::kDone;
    for (size_t done = 0; outcome == reproduce::Outcome::kDone;) {
      const std::vector<reproduce::Run> runs = reproduce::RunsOf(Plan());
      if (runs.size() == done) break;
      done = runs.size();
      outcome = reproduce::MakeRuns(store_, runs, how);
    }
    return outcome;
  }

 private:
  static reproduce::RunStore MakeStore(const Options& options, const Experiment& experiment) {
    const fs::path data = options.data.empty() ? FindNovels() : fs::path(options.data);
    const fs::path tasks = options.tasks.empty() ? fs::path() : fs::absolute(options.tasks);
    return reproduce::RunStore({fs::absolute(options.out), reproduce::FindCorpus(data, experiment.corpus),
                                tasks, options.task_limit, experiment.threads});
  }

  int Jobs() const {
    const int wanted = options_.jobs > 0 ? options_.jobs : experiment_.jobs;
    return wanted > 0 ? wanted : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }

  const Options& options_;
  const Experiment& experiment_;
  reproduce::RunStore store_;
};

int Reproduce(Options options) {
  const fs::path directory = FindInTree("configs/reproduce");
  if (options.out.empty()) options.out = "runs/reproduce-" + options.scale;
  std::vector<Experiment> experiments;
  for (const std::string& name : options.what)
    experiments.push_back(AsUsage([&] { return reproduce::ReadExperiment(directory, name, options.scale); }));
  const train::StopSignal stop;
  for (const Experiment& experiment : experiments) {
    const Reproduction reproduction(options, experiment);
    const train::RunLock lock(options.out);
    const reproduce::Outcome outcome = reproduction.Run([&] { return stop.requested(); });
    if (outcome == reproduce::Outcome::kStopped) {
      std::cerr << "stopped; the same command goes on\n";
      return 0;
    }
    if (outcome == reproduce::Outcome::kFailed) return 1;
  }
  return 0;
}

}  // namespace

void AddReproduce(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("reproduce", "Repeat the paper's experiments, its values beside yours");
  const auto options = std::make_shared<Options>();
  command->add_option("what", options->what, "experiments; see below")->required();
  command
      ->add_option("--scale", options->scale,
                   "laptop: hours on two cores; paper: a cluster; miniature: seconds")
      ->capture_default_str()
      ->check(CLI::IsMember({"laptop", "paper", "miniature"}));
  command->add_option(
      "--data", options->data,
      "directory with books_train.txt, books_valid.txt, edu_train.txt, edu_valid.txt, or with train "
      "and valid; default: the novels that come with the project");
  command->add_option("--out", options->out,
                      "directory of runs and results; default: runs/reproduce-<scale>");
  command
      ->add_option("--jobs", options->jobs, "processes at a time; default: the experiment's, or one a core")
      ->check(CLI::Range(1, 4096));
  command->add_option("--set", options->overrides, "section.key=value for every run; may be repeated");
  command->add_option("--tasks-dir", options->tasks, "zero-shot: directory with the tasks' jsonl files");
  command->add_option("--task-limit", options->task_limit, "zero-shot: only the first items of each task");
  command->add_flag("--dry-run", options->dry_run, "print the plan and how long it will take; run nothing");
  command->footer("Example: ./lattice reproduce ablation --scale laptop --data corpora");
  command->callback([options, &chosen] { chosen = [options] { return Reproduce(*options); }; });
}

}  // namespace lattice::cli
