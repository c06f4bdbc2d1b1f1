// `lattice reproduce`: plans, runs and summarises the paper's experiments.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/stop_signal.h"
#include "cli/command.h"
#include "cli/novels.h"
#include "io/directory_lock.h"
#include "io/json.h"
#include "reproduce/conversion.h"
#include "reproduce/estimate.h"
#include "reproduce/imitation.h"
#include "reproduce/results.h"
#include "reproduce/runner.h"
#include "reproduce/selection.h"
#include "reproduce/stored_summary.h"
#include "reproduce/tokenizer.h"
#include "train/trainer.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;
using reproduce::Experiment;

constexpr const char* kExperiments = "configs/reproduce";

struct ReproduceFlags {
  std::vector<std::string> what;
  std::string scale = "laptop";
  std::string data, out, tasks, teacher;
  std::vector<std::string> overrides, only;
  int jobs = 0;
  bool workers = false;
  double lease = 60;
  bool dry_run = false, only_write = false, redraw = false;
};

class Reproduction {
 public:
  Reproduction(const ReproduceFlags& options, const Experiment& experiment)
      : options_(options),
        experiment_(WithSelection(options, experiment)),
        store_(MakeStore(options, experiment)) {}

  reproduce::Plan Plan() const {
    return reproduce::MakePlan(experiment_, store_.options().corpus.fingerprint, options_.overrides,
                               Figures());
  }

  // Writes the results so far.
  void Write(const reproduce::PaperTable& paper, const std::string& command) const {
    const reproduce::Plan plan = Plan();
    const reproduce::Summary summary = reproduce::Summarize(experiment_, plan, store_, paper, command);
    if (summary.rows.empty()) return;
    const fs::path directory = fs::path(options_.out) / experiment_.name;
    reproduce::WriteResults(summary, paper, directory);
    std::cerr << experiment_.name << ": " << summary.runs << " of " << summary.wanted << " runs, "
              << (directory / "report.html").string() << "\n";
  }

  void PrintPlan() const {
    const reproduce::Plan plan = Plan();
    const std::optional<double> known = reproduce::MeasuredRate(store_, reproduce::RunsOf(plan));
    std::cout << reproduce::PlanText(experiment_, plan, store_, known ? *known : TimeThisMachine(), Jobs());
  }

  // Works point by point, so that what is complete when it is stopped is of use.
  reproduce::Outcome Run(const std::function<bool()>& stop) const {
    std::optional<reproduce::Claims> claims;
    if (options_.workers) claims.emplace(store_.options().out / "claims", options_.lease);
    const auto report = [&](const std::string& line) {
      std::cerr << experiment_.name << " " << line << std::endl;
    };
    const reproduce::RunnerOptions how{Jobs(), stop, report, claims ? &*claims : nullptr};
    if (experiment_.pieces > 0) {
      reproduce::MakeTokenizer(store_.options().out, store_.options().corpus, experiment_.pieces);
    }
    for (;;) {
      const std::vector<reproduce::Run> runs = NextRuns();
      if (runs.empty()) break;
      const reproduce::Outcome outcome = reproduce::MakeRuns(store_, runs, how);
      if (outcome != reproduce::Outcome::kDone) return outcome;
    }
    if (const size_t waiting = Plan().waiting.size(); waiting > 0)
      report(
          StrCat(waiting, " runs wait for what ", experiment_.selected_in, " decides; make its runs first"));
    return reproduce::Outcome::kDone;
  }

 private:
  // The missing runs of the first point that misses any. Where a learning rate is not known yet, those that
  // tune it: the others follow once they are done.
  std::vector<reproduce::Run> NextRuns() const {
    std::vector<reproduce::Run> runs = reproduce::RunsOf(Plan());
    std::erase_if(runs, [&](const reproduce::Run& run) { return store_.IsDone(run); });
    std::erase_if(runs, [point = runs.empty() ? 0 : runs[0].point](const reproduce::Run& run) {
      return run.point != point;
    });
    return runs;
  }

  reproduce::FigureOf Figures() const {
    return [&](const reproduce::Run& run, const std::string& figure) { return store_.Figure(run, figure); };
  }

  // The experiment with what the earlier one has decided so far, if there is an earlier one.
  static Experiment WithSelection(const ReproduceFlags& options, const Experiment& experiment) {
    Experiment out = experiment;
    if (experiment.selected_in.empty()) return out;
    const Experiment earlier =
        reproduce::ReadExperiment(FindInTree(kExperiments), experiment.selected_in, options.scale);
    const Reproduction selection(options, earlier);
    reproduce::Apply(reproduce::Select(earlier, selection.Plan(), selection.Figures()), earlier, out);
    return out;
  }

  static reproduce::RunStore MakeStore(const ReproduceFlags& options, const Experiment& experiment) {
    const fs::path data = options.data.empty() ? FindNovels() : fs::path(options.data);
    const fs::path tasks = options.tasks.empty() ? fs::path() : fs::absolute(options.tasks);
    const fs::path out = fs::absolute(options.out);
    const reproduce::Corpus corpus = reproduce::FindCorpus(data, experiment.corpus);
    return reproduce::RunStore({out, corpus, tasks, experiment.task_limit, experiment.threads,
                                reproduce::TokenizerFile(out, corpus, experiment.pieces)});
  }

  // Measures the operations per second of one thread with a few steps of configs/tiny.toml.
  double TimeThisMachine() const {
    train::TrainRequest request;
    request.config.data.train = store_.options().corpus.train;
    request.config.data.valid = store_.options().corpus.valid;
    request.run = store_.options().out / "work" / "timing";
    request.threads = experiment_.threads;
    request.silent = true;
    constexpr int64_t kTimedSteps = 3;
    const double seconds = train::MeasureStep(request, kTimedSteps);
    reproduce::Run run;
    run.settings = {{"train.steps", "1"}};
    return reproduce::RunFlops(run) / seconds;
  }

  int Jobs() const {
    const int wanted = options_.jobs > 0 ? options_.jobs : experiment_.jobs;
    return wanted > 0 ? wanted : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }

  const ReproduceFlags& options_;
  const Experiment experiment_;
  reproduce::RunStore store_;
};

// The command that repeats the experiment, with placeholders for directories.
std::string ShownCommand(const ReproduceFlags& options, const Experiment& experiment) {
  std::string out = StrCat("./lattice reproduce ", experiment.name, " --scale ", options.scale);
  if (!options.data.empty()) out += " --data DATA";
  for (const std::string& text : options.overrides) out += " --set " + text;
  if (experiment.tool == reproduce::Tool::kTasks) out += " --tasks-dir TASKS";
  return out;
}

std::vector<Experiment> ChooseExperiments(const ReproduceFlags& options, const fs::path& directory) {
  std::vector<std::string> names = options.what;
  if (names == std::vector<std::string>{"all"}) names = reproduce::ListExperiments(directory);
  std::vector<Experiment> out;
  for (const std::string& name : names)
    out.push_back(AsUsage([&] { return reproduce::ReadExperiment(directory, name, options.scale); }));
  return out;
}

// Redraws tables and figures from the results in a directory.
int Redraw(const std::vector<Experiment>& experiments, const reproduce::PaperTable& paper,
           const fs::path& out) {
  for (const Experiment& experiment : experiments) {
    const fs::path file = out / experiment.name / "results.json";
    const reproduce::Summary summary = reproduce::ReadSummary(io::ReadJson(file), experiment, paper);
    reproduce::WriteResults(summary, paper, file.parent_path());
    std::cerr << experiment.name << ": " << (file.parent_path() / "report.html").string() << "\n";
  }
  return 0;
}

// Experiments with a teacher instead of a scale: the conversion of a Transformer, and the imitation of its layers.
struct TeacherExperiment {
  const char* name;
  void (*draw)(const fs::path& directory);
  void (*print)();
  reproduce::Outcome (*make)(const reproduce::DistillOptions& what, const reproduce::RunnerOptions& how);
  void (*write)(const reproduce::DistillOptions& what, const std::string& command);
};

reproduce::ConversionPlan Conversion() {
  return reproduce::ReadConversionPlan(FindInTree("configs/conversion.json"));
}
reproduce::ImitationPlan Imitation() {
  return reproduce::ReadImitationPlan(FindInTree("configs/imitation.json"));
}

void PrintConversion() {
  for (const reproduce::ConversionStudent& student : Conversion().students) {
    std::cout << student.name << ":";
    for (const std::string& stage : student.stages) std::cout << " " << stage;
    std::cout << "\n";
  }
}

void PrintImitation() {
  const reproduce::ImitationPlan plan = Imitation();
  for (const auto& memory : plan.memories) std::cout << memory.name << ": " << plan.seeds.size() << " runs\n";
}

const TeacherExperiment kTeacherExperiments[] = {
    {"conversion", reproduce::DrawConversion, PrintConversion,
     [](const auto& what, const auto& how) { return reproduce::MakeConversion(Conversion(), what, how); },
     [](const auto& what, const auto& command) { reproduce::WriteConversion(Conversion(), what, command); }},
    {"imitation", reproduce::DrawImitation, PrintImitation,
     [](const auto& what, const auto& how) { return reproduce::MakeImitation(Imitation(), what, how); },
     [](const auto& what, const auto& command) { reproduce::WriteImitation(Imitation(), what, command); }}};

int ReproduceWithTeacher(const TeacherExperiment& experiment, const ReproduceFlags& options) {
  if (options.redraw) {
    experiment.draw(fs::path(options.out) / experiment.name);
    return 0;
  }
  if (options.teacher.empty() || options.data.empty())
    throw UsageError(StrCat(
        "reproduce ", experiment.name,
        " needs --teacher MODEL, an imported Transformer, and --data DIR with edu_train.txt, edu_valid.txt, "
        "books_train.txt and books_valid.txt, or with train.txt and valid.txt"));
  if (options.dry_run) {
    experiment.print();
    return 0;
  }
  const fs::path tasks = options.tasks.empty() ? fs::path() : fs::absolute(options.tasks);
  const reproduce::DistillOptions what = {fs::absolute(options.teacher),
                                          fs::absolute(options.data),
                                          fs::absolute(options.out),
                                          tasks,
                                          options.overrides,
                                          std::max(1, options.jobs),
                                          options.only};
  reproduce::Outcome outcome = reproduce::Outcome::kDone;
  if (!options.only_write) {
    const io::DirectoryLock lock(options.out, "reproducing");
    const StopSignal stop;
    outcome = experiment.make(
        what, {1, [&] { return stop.requested(); },
               [&](const std::string& line) { std::cerr << experiment.name << " " << line << std::endl; }});
  }
  std::string command = StrCat("./lattice reproduce ", experiment.name, " --teacher MODEL --data DATA");
  if (!options.tasks.empty()) command += " --tasks-dir TASKS";
  for (const std::string& text : options.overrides) command += " --set " + text;
  experiment.write(what, command);
  if (outcome == reproduce::Outcome::kStopped) std::cerr << "stopped; the same command goes on\n";
  return outcome == reproduce::Outcome::kFailed ? 1 : 0;
}

int Reproduce(ReproduceFlags options) {
  const fs::path directory = FindInTree(kExperiments);
  for (const TeacherExperiment& experiment : kTeacherExperiments) {
    if (options.what != std::vector<std::string>{experiment.name}) continue;
    if (options.out.empty()) options.out = StrCat("runs/", experiment.name);
    return ReproduceWithTeacher(experiment, options);
  }
  if (options.out.empty()) options.out = "runs/reproduce-" + options.scale;
  const std::vector<Experiment> experiments = ChooseExperiments(options, directory);
  const reproduce::PaperTable paper(directory / "paper.json");
  if (options.redraw) return Redraw(experiments, paper, options.out);
  bool failed = false;
  for (const Experiment& experiment : experiments) {
    const Reproduction reproduction(options, experiment);
    if (options.dry_run) {
      reproduction.PrintPlan();
      continue;
    }
    reproduce::Outcome outcome = reproduce::Outcome::kDone;
    if (!options.only_write) {
      std::optional<io::DirectoryLock> lock;
      if (!options.workers) lock.emplace(options.out, "reproducing");
      const StopSignal stop;
      outcome = reproduction.Run([&] { return stop.requested(); });
    }
    reproduction.Write(paper, ShownCommand(options, experiment));
    failed = failed || outcome == reproduce::Outcome::kFailed;
    if (outcome != reproduce::Outcome::kStopped) continue;
    std::cerr << "stopped; the same command goes on\n";
    return 0;
  }
  return failed ? 1 : 0;
}

}  // namespace

void AddReproduce(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("reproduce", "Repeat the paper's experiments, its values beside yours");
  const auto options = std::make_shared<ReproduceFlags>();
  command->add_option("what", options->what, "experiments, or all; see below")->required();
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
  command->add_flag(
      "--workers", options->workers,
      "this command runs on several machines that share OUT: each takes runs that no other has");
  command
      ->add_option("--lease", options->lease,
                   "with --workers: seconds after which the runs of a silent machine are taken over")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  command->add_option("--set", options->overrides, "section.key=value for every run; may be repeated");
  command->add_option("--tasks-dir", options->tasks,
                      "zero-shot and conversion: directory with the tasks' jsonl files");
  command->add_option("--teacher", options->teacher, "conversion and imitation: the Transformer");
  command->add_option("--only", options->only,
                      "conversion and imitation: make this student or memory alone; may be repeated");
  command->add_flag("--dry-run", options->dry_run, "print the plan and how long it will take; run nothing");
  command->add_flag("--only-write", options->only_write,
                    "write the results of the runs that are done; run nothing");
  command->add_flag("--redraw", options->redraw,
                    "write table.md, figure.svg and report.html again from OUT/<experiment>/results.json; "
                    "needs neither runs nor data");
  command->footer(
      "Experiments: ablation, books-context, choices, confirm, confirm2, decode, hybrids, mqar, "
      "pile-context, recall, "
      "scaling, "
      "select, select2, slots, throughput, zero-shot; all. By themselves, with --teacher "
      "(docs/distillation.md): "
      "conversion, "
      "of a Transformer into memories; imitation, of its layers one by one.\n"
      "Writes OUT/<experiment>/results.json, table.md, figure.svg and report.html; OUT/runs holds one file a "
      "run.\n"
      "Stop it at any time: the same command goes on. docs/results.md has what we found.\n\n"
      "Examples:\n"
      "  ./lattice reproduce ablation --dry-run\n"
      "  ./lattice reproduce ablation slots --scale laptop --data corpora --out runs/laptop\n"
      "  ./lattice reproduce ablation slots --scale laptop --redraw --out results");
  command->callback([options, &chosen] { chosen = [options] { return Reproduce(*options); }; });
}

}  // namespace lattice::cli
