// `lattice train`: resolves configuration, run directory and checkpoint to resume from, then trains.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/command.h"
#include "cli/next_steps.h"
#include "cli/ranks.h"
#include "dist/local_ranks.h"
#include "model/checkpoint.h"
#include "model/config.h"
#include "runs/run_directory.h"
#include "train/trainer.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;

// The prompt of the commands that are suggested at the end.
constexpr const char* kExamplePrompt = "It was";

struct TrainFlags {
  std::string config;
  std::string data;
  std::string valid;
  std::string out;
  std::vector<std::string> overrides;
  std::string resume;
  std::string init;
  std::string device = "cpu";
  int threads = 0;
  RankFlags ranks;
};

bool Exists(const std::string& path) { return !path.empty() && fs::exists(path); }

// Makes paths of data absolute, so that a run can be resumed from any directory.
void MakeAbsolute(std::string& path) {
  if (Exists(path)) path = fs::absolute(path).lexically_normal().string();
}

// A resumed run uses its own configuration unless another is given.
fs::path ConfigFile(const TrainFlags& options) {
  if (!options.config.empty() || options.resume.empty() || options.out.empty()) return options.config;
  const fs::path own = fs::path(options.out) / runs::kConfigToml;
  return fs::exists(own) ? own : fs::path();
}

// Model and tokenizer of the checkpoint that --init names.
void TakeModel(const TrainFlags& options, const fs::path& checkpoint, model::Config& config) {
  for (const std::string& assignment : options.overrides) {
    if (assignment.starts_with("model.") || assignment.starts_with("data.tokenizer")) {
      throw UsageError(StrCat("--set ", assignment, ": --init takes model and tokenizer from ",
                              checkpoint.string(), "; leave one of the two out"));
    }
  }
  config.model = model::ReadModelConfig(checkpoint);
  config.data.tokenizer = checkpoint.string();
}

model::Config ReadConfig(const TrainFlags& options) {
  model::Config config = AsUsage([&] { return model::LoadConfig(ConfigFile(options), options.overrides); });
  if (!options.init.empty()) TakeModel(options, runs::FindCheckpoint(options.init), config);
  if (!options.data.empty()) config.data.train = options.data;
  if (!options.valid.empty()) config.data.valid = options.valid;
  if (config.data.train.empty()) throw UsageError("no text to train on; pass --data FILE or set data.train");
  MakeAbsolute(config.data.train);
  MakeAbsolute(config.data.valid);
  if (config.data.tokenizer != "bytes") MakeAbsolute(config.data.tokenizer);
  return config;
}

fs::path RunDirectory(const TrainFlags& options, const model::Config& config) {
  if (!options.out.empty()) return options.out;
  const std::string name = fs::path(config.data.train).stem().string();
  return runs::NewRun("runs", StrCat(name, "-", config.model.mixer));
}

// The checkpoints to resume from according to --resume, the best first; empty: start from scratch.
std::vector<fs::path> ResumeFrom(const TrainFlags& options, const fs::path& run) {
  const bool has_checkpoints = !runs::ListCheckpoints(run).empty();
  if (options.resume.empty()) {
    if (has_checkpoints) {
      throw UsageError(
          StrCat(run.string(), " holds a run already; pass --resume auto to go on, or another --out"));
    }
    return {};
  }
  if (options.resume == "auto") return runs::ResumeCandidates(run);
  const fs::path from = options.resume == "latest" ? run : fs::path(options.resume);
  runs::FindCheckpoint(from);  // throws an error that says what is missing
  return runs::ResumeCandidates(from);
}

// Threads of each of the ranks that this process starts.
int ThreadsPerRank(const TrainFlags& options) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return options.threads > 0 ? options.threads : std::max(1, cores / options.ranks.ranks);
}

int Train(const TrainFlags& options) {
  if (options.device != "cpu") {
    throw UsageError(StrCat("--device ", options.device,
                            ": this program trains on the CPU only; on a GPU the ",
                            "operators run from Python (docs/gpu.md)"));
  }
  if (options.out.empty() && (options.resume == "auto" || options.resume == "latest")) {
    throw UsageError(StrCat("--resume ", options.resume, " needs --out RUN, the run to go on with"));
  }
  if (!options.init.empty() && !options.resume.empty())
    throw UsageError("--init starts a new run and --resume goes on with one; pass one of the two");
  if (options.out.empty() && RanksTogether(options.ranks))
    throw UsageError("ranks that train together need --out RUN, the directory that they share");
  if (options.ranks.timeline && !RanksTogether(options.ranks))
    throw UsageError("--timeline shows ranks that train together; add --ranks 2, or leave it out");
  train::TrainRequest request;
  request.config = ReadConfig(options);
  if (!options.init.empty()) request.init = runs::FindCheckpoint(options.init);
  request.run = RunDirectory(options, request.config);
  request.checkpoints = ResumeFrom(options, request.run);
  // With --resume auto a completed run is a success, so that scripts can repeat the command until it
  // succeeds.
  request.complete_is_fine = options.resume == "auto";
  request.threads = options.threads;
  request.resume_command =
      StrCat(Launcher(), " train --out ", ShellWord(request.run.string()), " --resume latest",
             options.ranks.ranks > 1 ? StrCat(" --ranks ", options.ranks.ranks) : "");
  if (StartsRanks(options.ranks)) return dist::RunRanks(options.ranks.ranks, ThreadsPerRank(options));
  const std::unique_ptr<dist::Group> group = JoinRanks(options.ranks);
  request.group = group.get();
  const train::TrainResult result = train::Train(request);
  if (result.stopped || (group != nullptr && !group->root())) return 0;
  if (result.held_out == 0)
    std::cout << "warning: no text was held out, so there is no validation loss (--valid TEXT)\n";
  std::cout << "\nNext:\n" << NextSteps(request.run, kExamplePrompt);
  return 0;
}

}  // namespace

void AddTrain(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("train", "Train a language model on text");
  const auto options = std::make_shared<TrainFlags>();
  AddPlugins(*command);
  command->add_option("--data", options->data,
                      "text file, directory of .txt files, or directory of token shards");
  command->add_option("--valid", options->valid,
                      "text to validate on; without it the end of the data is held out");
  command->add_option("--config", options->config,
                      "configuration: a file, or the name of one of configs/, such as small; default: tiny");
  command->add_option("--set", options->overrides,
                      "section.key=value, overrides the configuration; may be repeated");
  command->add_option("--out", options->out, "run directory; default: runs/<text>-<mixer>-<number>");
  command->add_option(
      "--resume", options->resume,
      "auto: from the newest checkpoint in --out if there is one; latest: it must be there; or a path");
  command->add_option(
      "--init", options->init,
      "start from the weights, model and tokenizer of this run or checkpoint, also one of Hugging Face's");
  command->add_option("--device", options->device, "cpu, the only one so far (docs/gpu.md)");
  command->add_option("--threads", options->threads, "threads; default: all cores")
      ->check(CLI::Range(1, 4096));
  AddRankOptions(*command, options->ranks);
  command->footer(
      StrCat("Examples:\n"
             "  ./lattice train --data book.txt\n"
             "  ./lattice train --config configs/small.toml --data book.txt --out runs/book "
             "--set model.mixer=deltanet --set train.steps=2000 --resume auto\n\n"
             "Keys for --set, with their defaults:\n",
             model::ConfigHelp()));
  command->callback([options, &chosen] { chosen = [options] { return Train(*options); }; });
}

}  // namespace lattice::cli
