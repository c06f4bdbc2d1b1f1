// `lattice mqar`: sweeps of multi-query associative recall.
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/stop_signal.h"
#include "cli/between.h"
#include "cli/command.h"
#include "cli/progress_bar.h"
#include "io/directory_lock.h"
#include "io/file.h"
#include "recall/sweep.h"
#include "runs/run_directory.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;

struct MqarFlags {
  std::string scale = "laptop";
  std::string out;
  std::vector<std::string> mixers, set;
  std::vector<int64_t> widths, lengths, pairs;
  std::vector<double> rates;
  int64_t batch = 0, epochs = 0, examples = 0, valid_examples = 0, vocab = 0;
  double stop_at = -1, power = 0.01;
  bool no_noise = false;
  uint64_t seed = 0;
  int threads = 0;
  int64_t show = 0, measure = 0;
  bool json = false;
};

template <typename T>
void Replace(const std::vector<T>& wanted, std::vector<T>& list) {
  if (!wanted.empty()) list = wanted;
}

void Replace(int64_t wanted, int64_t& value) {
  if (wanted > 0) value = wanted;
}

recall::MqarGrid MakeGrid(const MqarFlags& options) {
  recall::MqarGrid grid = recall::GridOf(options.scale);
  Replace(options.mixers, grid.mixers);
  Replace(options.widths, grid.widths);
  Replace(options.lengths, grid.lengths);
  Replace(options.pairs, grid.pairs);
  Replace(options.rates, grid.rates);
  Replace(options.batch, grid.base.batch);
  Replace(options.epochs, grid.base.epochs);
  Replace(options.examples, grid.base.examples);
  Replace(options.valid_examples, grid.base.valid_examples);
  Replace(options.vocab, grid.base.task.vocab);
  if (options.stop_at >= 0) grid.base.stop_at = options.stop_at;
  grid.base.set = options.set;
  grid.base.task.power = options.power;
  grid.base.task.noise = !options.no_noise;
  grid.base.task.seed = options.seed;
  return grid;
}

// The paper uses a quarter of the batch size at length 2048.
void FitBatch(const MqarFlags& options, recall::RecallPoint& point) {
  if (options.scale == "paper" && options.batch == 0 && point.task.length >= 2048) point.batch = 24;
}

int ShowExamples(const recall::RecallPoint& point, int64_t count) {
  const recall::MqarGenerator generator(point.task);
  std::vector<int64_t> tokens(static_cast<size_t>(point.task.length)), labels(tokens.size());
  for (int64_t i = 0; i < count; ++i) {
    generator.Make(static_cast<uint64_t>(i), tokens, labels);
    std::cout << nlohmann::ordered_json({{"index", i}, {"tokens", tokens}, {"labels", labels}}).dump()
              << "\n";
  }
  return 0;
}

int MeasureGenerator(const recall::RecallPoint& point, int64_t count) {
  const recall::MqarGenerator generator(point.task);
  std::vector<int64_t> tokens(static_cast<size_t>(point.task.length)), labels(tokens.size());
  const auto began = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) generator.Make(static_cast<uint64_t>(i), tokens, labels);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::cout << Grouped(count) << " examples of L = " << point.task.length << " with " << point.task.pairs
            << " pairs in " << Fixed(seconds, 2) << " s on one core\n";
  return 0;
}

// Writes figure and table of the results so far, at the best learning rates.
void WriteSummary(const fs::path& out) {
  const nlohmann::json results = recall::ReadResults(out);
  io::WriteFileAtomic(out / "mqar.svg", recall::MqarFigure(results));
}

// Returns false when a signal stopped it.
bool RunPoint(const MqarFlags& options, const recall::RecallPoint& point, const std::string& number,
              const StopSignal& stop) {
  std::cerr << number << " " << point.Name() << std::endl;
  ProgressBar bar(point.Name());
  const recall::RecallReport report =
      recall::TrainRecall(point, fs::path(options.out) / "unfinished" / point.Name(), [&](const auto& now) {
        bar.Show(now.step, now.steps);
        return !stop.requested();
      });
  if (report.stopped) return false;
  recall::WriteResult(options.out, point, report);
  WriteSummary(options.out);
  std::cerr << "  accuracy " << Fixed(100 * report.best, 2) << " % after " << report.epoch << " epochs, "
            << DurationText(report.seconds) << std::endl;
  return true;
}

int Sweep(const MqarFlags& options, const std::vector<recall::RecallPoint>& points) {
  if (options.threads > 0) at::set_num_threads(options.threads);
  const io::DirectoryLock lock(options.out, "training");
  const StopSignal stop;
  std::vector<const recall::RecallPoint*> todo;
  for (const recall::RecallPoint& point : points) {
    if (!recall::IsDone(options.out, point)) todo.push_back(&point);
  }
  std::cerr << points.size() << " points, " << points.size() - todo.size() << " of them done already\n";
  bool failed = false;
  for (size_t i = 0; i < todo.size(); ++i) {
    try {
      if (RunPoint(options, *todo[i], StrCat("[", i + 1, "/", todo.size(), "]"), stop)) continue;
    } catch (const Error& error) {
      // A point that diverges (its learning rate is too large) must not end the sweep.
      std::cerr << "lattice: " << error.what() << "\n";
      failed = true;
      continue;
    }
    std::cerr << "stopped; the same command goes on from the last whole epoch\n";
    return 0;
  }
  const nlohmann::json results = recall::ReadResults(options.out);
  WriteSummary(options.out);
  std::cout << (options.json ? results.dump(2) + "\n" : recall::MqarTable(results));
  std::cerr << "figure: " << (fs::path(options.out) / "mqar.svg").string() << "\n";
  return failed ? 1 : 0;
}

int Mqar(const MqarFlags& options) {
  std::vector<recall::RecallPoint> points = AsUsage([&] { return recall::PointsOf(MakeGrid(options)); });
  for (recall::RecallPoint& point : points) FitBatch(options, point);
  if (options.show > 0) return ShowExamples(points.front(), options.show);
  if (options.measure > 0) return MeasureGenerator(points.front(), options.measure);
  if (options.out.empty()) throw UsageError("pass --out DIRECTORY for the results, such as runs/mqar");
  return Sweep(options, points);
}

}  // namespace

void AddMqar(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("mqar", "Train small models to recall, and compare memories");
  const auto options = std::make_shared<MqarFlags>();
  AddPlugins(*command);
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 40);
  command->add_option("--out", options->out, "directory of the sweep; finished points are not repeated");
  command->add_option("--scale", options->scale, "paper: its protocol (days); laptop: minutes")
      ->capture_default_str()
      ->check(CLI::IsMember({"paper", "laptop"}));
  command->add_option("--mixers", options->mixers, "memories, with commas between them")->delimiter(',');
  command->add_option("--d", options->widths, "model widths")->delimiter(',')->check(positive);
  command->add_option("--lr", options->rates, "learning rates")->delimiter(',')->check(CLI::PositiveNumber);
  command->add_option("--length", options->lengths, "L, tokens of an example")
      ->delimiter(',')
      ->check(positive);
  command->add_option("--pairs", options->pairs, "N_KV, pairs to recall")->delimiter(',')->check(positive);
  command->add_option("--vocab", options->vocab, "vocabulary")->check(positive);
  command->add_option("--batch", options->batch, "examples a step")->check(positive);
  command->add_option("--epochs", options->epochs, "times each example is seen")->check(positive);
  command->add_option("--examples", options->examples, "examples to train on")->check(positive);
  command->add_option("--valid-examples", options->valid_examples, "examples to validate on")
      ->check(positive);
  command->add_option("--stop-at", options->stop_at, "end a point at this accuracy; 0: never")
      ->check(Between(0.0, 1.0));
  command->add_option("--power", options->power, "of the law of the gaps")->capture_default_str();
  command->add_flag("--no-noise", options->no_noise, "token 0 between the queries instead of random ones");
  command->add_option("--set", options->set, "model.key=value for all of them; may be repeated");
  command->add_option("--seed", options->seed, "of examples and weights")->capture_default_str();
  command->add_option("--threads", options->threads, "threads; default: all cores")
      ->check(CLI::Range(1, 4096));
  command->add_option("--show", options->show, "print this many examples as jsonl and do nothing else")
      ->check(positive);
  command->add_option("--measure", options->measure, "time making this many examples and do nothing else")
      ->check(positive);
  command->add_flag("--json", options->json, "print all results as JSON");
  command->footer("Example: ./lattice mqar --scale laptop --mixers lattice_dec,deltanet --out runs/mqar");
  command->callback([options, &chosen] { chosen = [options] { return Mqar(*options); }; });
}

}  // namespace lattice::cli
