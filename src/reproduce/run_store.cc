// Stores the results of finished runs, and builds the commands that make a run.
#include "reproduce/run_store.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/json.h"
#include "model/tensors.h"
#include "reproduce/provenance.h"
#include "runs/run_directory.h"
#include "runs/run_metrics.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kTasksReport = "tasks.json";
constexpr const char* kDecodeReport = "decode.json";
constexpr int64_t kDecodedTokens = 1024;

std::vector<std::string> TrainArguments(const Run& run, const std::string& train, const std::string& valid,
                                        const std::string& tokenizer) {
  std::vector<std::string> out = {"train", "--data", train, "--valid", valid};
  if (run.pieces > 0) out.insert(out.end(), {"--set", "data.tokenizer=" + tokenizer});
  if (!run.config.empty()) out.insert(out.end(), {"--config", run.config});
  for (const std::string& text : run.Assignments()) out.insert(out.end(), {"--set", text});
  return out;
}

std::vector<std::string> MqarArguments(const Run& run) {
  std::vector<std::string> out = {"mqar"};
  for (const auto& [key, value] : run.settings) {
    if (key.starts_with("model.")) {
      out.insert(out.end(), {"--set", key + "=" + value});
      continue;
    }
    out.push_back("--" + key);
    if (value != "true") out.push_back(value);
  }
  return out;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

// The tokens per second, without the first quarter of the lines: the first steps include allocations.
double Speed(const runs::RunMetrics& metrics) {
  const runs::Series& all = metrics.Get("tokens_per_s");
  std::vector<double> rates;
  for (size_t i = all.size() / 4; i < all.size(); ++i) rates.push_back(all[i].second);
  return Median(rates);
}

double Last(const runs::RunMetrics& metrics, const std::string& key) {
  const runs::Series& series = metrics.Get(key);
  Check(!series.empty(), "[reproduce] a run ended without \"", key, "\"");
  return series.back().second;
}

json TrainFigures(const fs::path& run, int64_t steps) {
  const runs::RunMetrics metrics = runs::ReadRunMetrics(run);
  const runs::Series& validations = metrics.Get("valid_perplexity");
  Check(!validations.empty() && validations.back().first == static_cast<double>(steps),
        "[reproduce] the run in ", run.string(), " ended before step ", steps);
  return {{"perplexity", Last(metrics, "valid_perplexity")},
          {"bits_per_byte", Last(metrics, "valid_bits_per_byte")},
          {"loss", Last(metrics, "loss")},
          {"tokens_per_s", Speed(metrics)},
          {"seconds", Last(metrics, "elapsed")}};
}

// Adds the figures of the zero-shot tasks: "piqa" -> {"acc": ..} becomes "piqa.acc".
void AddTaskFigures(const fs::path& report, json& figures) {
  const json all = io::ReadJson(report);
  for (const auto& [task, result] : all.at("results").items()) {
    for (const auto& [key, value] : result.items()) {
      if (key.starts_with("acc") && value.is_number()) figures[task + "." + key] = 100 * value.get<double>();
    }
  }
}

// Adds the mean of the seven columns of the paper's table.
void AddAverage(json& figures) {
  double sum = 0;
  for (const char* key : {"piqa.acc", "hellaswag.acc_norm", "winogrande.acc", "arc_easy.acc",
                          "arc_challenge.acc_norm", "commonsense_qa_cloze.acc", "boolq.acc"}) {
    if (!figures.contains(key)) return;
    sum += figures[key].get<double>();
  }
  figures["average"] = sum / 7;
}

// Adds the tokens per second of one stream.
void AddDecodeFigures(const fs::path& report, json& figures) {
  const json result = io::ReadJson(report);
  const double tokens = result.at("tokens"), seconds = result.at("seconds");
  Check(tokens > 0 && seconds > 0, "[reproduce] generate made no token: ", report.string());
  figures["decode_tokens_per_s"] = tokens / seconds;
}

json MqarFigures(const fs::path& out) {
  for (const fs::directory_entry& entry : fs::directory_iterator(out / "results")) {
    const json result = io::ReadJson(entry.path());
    return {{"accuracy", result.at("best_accuracy")},
            {"last_accuracy", result.at("accuracy")},
            {"loss", result.at("loss")},
            {"seconds", result.at("seconds")}};
  }
  Fail("[reproduce] mqar left no result in ", out.string());
}

}  // namespace

fs::path RunStore::ResultFile(const Run& run) const { return options_.out / "runs" / (run.id + ".json"); }
fs::path RunStore::Work(const Run& run) const { return options_.out / "work" / run.id; }

bool RunStore::IsDone(const Run& run) const { return fs::exists(ResultFile(run)); }

json RunStore::Result(const Run& run) const { return io::ReadJson(ResultFile(run)); }

std::optional<double> RunStore::Figure(const Run& run, const std::string& figure) const {
  if (!IsDone(run)) return std::nullopt;
  const json result = Result(run);
  const json& figures = result.at("figures");
  if (!figures.contains(figure)) return std::nan("");
  return figures.at(figure).get<double>();
}

std::vector<Command> RunStore::Commands(const Run& run) const {
  const fs::path work = Work(run);
  std::vector<std::string> threads;
  if (options_.threads > 0) threads = {"--threads", StrCat(options_.threads)};
  std::vector<Command> out;
  if (run.tool == Tool::kMqar) {
    std::vector<std::string> args = MqarArguments(run);
    args.insert(args.end(), {"--out", work.string()});
    out.push_back({std::move(args), work / "log.txt"});
  } else {
    std::vector<std::string> args =
        TrainArguments(run, options_.corpus.train, options_.corpus.valid, options_.tokenizer);
    args.insert(args.end(), {"--out", work.string(), "--resume", "auto"});
    out.push_back({std::move(args), work / "log.txt"});
  }
  if (run.tool == Tool::kTasks) {
    Check(!options_.tasks.empty(),
          "[reproduce] this experiment needs --tasks-dir DIRECTORY with the zero-shot tasks");
    std::vector<std::string> args = {
        "eval",    "tasks",   "--model", work.string(), "--tasks-dir", options_.tasks.string(),
        "--paper", "--tasks", "all",     "--json"};
    if (options_.task_limit > 0) args.insert(args.end(), {"--limit", StrCat(options_.task_limit)});
    out.push_back({std::move(args), work / kTasksReport});
  }
  if (run.tool == Tool::kDecode) {
    out.push_back({{"generate", "--model", work.string(), "--prompt", "It was", "--tokens",
                    StrCat(kDecodedTokens), "--seed", StrCat(run.seed), "--json"},
                   work / kDecodeReport});
  }
  for (Command& command : out) command.args.insert(command.args.end(), threads.begin(), threads.end());
  return out;
}

std::string RunStore::ShownCommand(const Run& run) const {
  const std::vector<std::string> args =
      run.tool == Tool::kMqar ? MqarArguments(run)
                              : TrainArguments(run, options_.corpus.shown_train, options_.corpus.shown_valid,
                                               "OUT/tokenizers/" + options_.tokenizer.filename().string());
  std::string out = "./lattice";
  for (const std::string& arg : args) out += " " + arg;
  return out;
}

json RunStore::Figures(const Run& run) const {
  const fs::path work = Work(run);
  if (run.tool == Tool::kMqar) return MqarFigures(work);
  json figures = TrainFigures(work, run.Config().train.steps);
  if (run.tool == Tool::kTasks) {
    AddTaskFigures(work / kTasksReport, figures);
    AddAverage(figures);
  }
  if (run.tool == Tool::kDecode) AddDecodeFigures(work / kDecodeReport, figures);
  return figures;
}

void RunStore::Finish(const Run& run, const std::string& diverged) const {
  model::Config config = run.Config();
  const fs::path resolved = Work(run) / runs::kConfigToml;
  if (fs::exists(resolved)) config = model::LoadConfig(resolved);
  const model::ParameterCounts parameters = model::CountParameters(config.model);
  json result = {{"id", run.id},
                 {"settings", run.settings},
                 {"config", run.config},
                 {"rate", run.rate},
                 {"seed", run.seed},
                 {"corpus", run.tool == Tool::kMqar ? "" : options_.corpus.fingerprint},
                 {"parameters", parameters.total},
                 {"non_embedding", parameters.non_embedding},
                 {"tokens", config.train.steps * config.train.batch_tokens},
                 {"threads", options_.threads},
                 {"command", ShownCommand(run)},
                 {"commit", Commit()},
                 {"cpu", CpuName()},
                 {"figures", diverged.empty() ? Figures(run) : json::object()}};
  if (!diverged.empty()) result["diverged"] = diverged;
  io::MakeDirectories(options_.out / "runs");
  io::WriteFileAtomic(ResultFile(run), io::DumpJsonIndented(result));
  io::RemoveTree(Work(run));
}

}  // namespace lattice::reproduce
