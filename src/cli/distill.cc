// `lattice distill`: turns a Transformer into a model with memories, stage by stage.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/next_steps.h"
#include "distill/imitation.h"
#include "distill/matching.h"
#include "distill/student.h"
#include "model/checkpoint.h"
#include "model/config.h"
#include "runs/run_directory.h"
#include "text/tokenizer.h"
#include "train/trainer.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;

enum class Stage { kImitate, kMatch, kTune };
const std::map<std::string, Stage> kStages = {
    {"imitate", Stage::kImitate}, {"match", Stage::kMatch}, {"tune", Stage::kTune}};
const std::map<std::string, distill::Learns> kLearns = {
    {"mixers", distill::Learns::kMixers}, {"new", distill::Learns::kNew}, {"all", distill::Learns::kAll}};

struct DistillFlags {
  std::string teacher, student, data, valid, out;
  std::string stage = "imitate", learns = "mixers", from;
  std::vector<std::string> overrides;
  std::string cache;
  double cache_gib = 16;
  double hidden = 0;
  int64_t rank = 0;
  int threads = 0;
};

// The directory of a stage inside the run.
fs::path StageDirectory(const DistillFlags& flags, const std::string& stage) {
  return fs::path(flags.out) / stage;
}

// A tokenizer that the student's configuration names must be the teacher's: their ids are the same weights.
void RequireSameTokenizer(const model::Config& config, const fs::path& teacher) {
  if (config.data.tokenizer == model::DataConfig().tokenizer) return;
  const auto ours = text::OpenTokenizer(config.data.tokenizer),
             theirs = text::OpenTokenizer(teacher.string());
  if (ours->hash() == theirs->hash()) return;
  throw UsageError(StrCat("the student's tokenizer, ", config.data.tokenizer,
                          ", is not that of the teacher, ", teacher.string(),
                          "; leave data.tokenizer out to use the teacher's"));
}

model::Config ReadConfig(const DistillFlags& flags, const fs::path& teacher) {
  model::Config config =
      AsUsage([&] { return model::LoadConfig(flags.student, flags.overrides, /*validate=*/false); });
  RequireSameTokenizer(config, teacher);
  config.model = distill::StudentConfig(config.model, model::ReadModelConfig(teacher));
  model::Validate(config);
  config.data.tokenizer = fs::absolute(teacher).lexically_normal().string();
  if (!flags.data.empty()) config.data.train = flags.data;
  if (!flags.valid.empty()) config.data.valid = flags.valid;
  if (config.data.train.empty())
    throw UsageError("no text to learn from; pass --data FILE or set data.train");
  for (std::string* path : {&config.data.train, &config.data.valid}) {
    if (!path->empty() && fs::exists(*path)) *path = fs::absolute(*path).lexically_normal().string();
  }
  return config;
}

// The checkpoint that a stage starts from: --from, or the stage before it; empty: the teacher.
fs::path StartOf(const DistillFlags& flags, Stage stage) {
  if (!flags.from.empty()) return runs::FindCheckpoint(flags.from);
  if (stage == Stage::kImitate) return {};
  for (const char* before : {"match", "imitate"}) {
    if (before == flags.stage) continue;
    const fs::path run = StageDirectory(flags, before);
    if (!runs::ListCheckpoints(run).empty()) return runs::FindCheckpoint(run);
  }
  if (stage == Stage::kMatch) return {};
  throw UsageError(StrCat("--stage tune starts from a converted model, and ", flags.out,
                          " has none; run --stage imitate or match before, or name one with --from"));
}

distill::LayerCache CacheOf(const DistillFlags& flags) {
  return {flags.cache, static_cast<int64_t>(flags.cache_gib * (int64_t{1} << 30))};
}

int Distill(const DistillFlags& flags) {
  const auto stage = kStages.find(flags.stage);
  if (stage == kStages.end())
    throw UsageError(StrCat("--stage ", flags.stage, ": the stages are imitate, match and tune"));
  const auto learns = kLearns.find(flags.learns);
  if (learns == kLearns.end())
    throw UsageError(StrCat("--learn ", flags.learns, ": the choices are mixers, new and all"));
  const fs::path teacher = runs::FindCheckpoint(flags.teacher);
  train::TrainRequest request;
  request.config = ReadConfig(flags, teacher);
  request.run = StageDirectory(flags, flags.stage);
  request.init = StartOf(flags, stage->second);
  request.checkpoints = runs::ResumeCandidates(request.run);
  request.complete_is_fine = true;
  request.threads = flags.threads;
  request.low_rank = flags.rank;
  request.resume_command = "the same command";
  if (stage->second != Stage::kTune) {
    const distill::Teacher model = distill::LoadTeacher(teacher);
    if (stage->second == Stage::kImitate) {
      request.objective = std::make_shared<distill::Imitation>(
          distill::TeacherLayers(model, teacher, CacheOf(flags)), learns->second);
    } else {
      request.objective = std::make_shared<distill::Matching>(model, learns->second, flags.hidden);
    }
  }
  const train::TrainResult result = train::Train(request);
  if (!result.stopped) std::cout << "\nNext:\n" << NextSteps(request.run, "The");
  return 0;
}

}  // namespace

void AddDistill(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("distill", "Turn a Transformer into a model with memories");
  const auto flags = std::make_shared<DistillFlags>();
  AddPlugins(*command);
  command->add_option("--teacher", flags->teacher, "the Transformer: an imported model, or a run")
      ->required();
  command
      ->add_option(
          "--student", flags->student,
          "configuration of the student: a file, or the name of one of configs/, such as convert-hybrid; "
          "sizes are the teacher's")
      ->required();
  command->add_option("--data", flags->data,
                      "text file, directory of .txt files, or directory of token shards");
  command->add_option("--valid", flags->valid,
                      "text to validate on; without it the end of the data is held out");
  command->add_option("--out", flags->out, "directory of the conversion; each stage is a run inside")
      ->required();
  command->add_option(
      "--stage", flags->stage,
      "imitate: every layer the attention it replaces; match: the teacher's predictions; tune: the "
      "text. A stage that was stopped goes on");
  command->add_option(
      "--learn", flags->learns,
      "mixers: all of the new layers; new: only what attention has not; all: everything but the "
      "embedding and the head");
  command->add_option("--from", flags->from, "start from this run or checkpoint instead of the stage before");
  command
      ->add_option("--rank", flags->rank,
                   "projections learn as W0 + B A with factors of this rank; the sum is saved")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option("--hidden", flags->hidden,
                   "match: weight of the distance of hidden states beside that of predictions")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option(
      "--cache", flags->cache,
      "imitate: directory that keeps what the teacher computes, for other students of the same "
      "text; 135 KiB a token of a model with 30 layers of width 576");
  command
      ->add_option("--cache-gib", flags->cache_gib,
                   "bound of that directory; what is beyond is computed each time")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--set", flags->overrides,
                      "section.key=value, overrides the configuration; may be repeated");
  command->add_option("--threads", flags->threads, "threads; default: all cores")->check(CLI::Range(1, 4096));
  command->footer(
      "Examples:\n"
      "  ./lattice distill --teacher models/smollm2 --student convert-hybrid --data book.txt --out "
      "runs/hybrid\n"
      "  ./lattice distill --teacher models/smollm2 --student convert-hybrid --data book.txt --out "
      "runs/hybrid "
      "--stage match\n");
  command->callback([flags, &chosen] { chosen = [flags] { return Distill(*flags); }; });
}

}  // namespace lattice::cli
