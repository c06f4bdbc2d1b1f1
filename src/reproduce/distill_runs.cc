#include "reproduce/distill_runs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/ascii.h"
#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/json.h"
#include "reproduce/corpus.h"
#include "reproduce/provenance.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxMetrics = size_t{256} << 20;

// The text as one file, OUT/text/train.txt, made once.
fs::path TrainingText(const DistillText& text, const DistillOptions& options) {
  const fs::path file = options.out / "text" / "train.txt";
  if (fs::exists(file)) return file;
  std::string all;
  for (const std::string& name : text.corpora) {
    std::string part;
    for (const fs::path& source : FilesOf(FindCorpus(options.data, name).train)) {
      const io::MappedFile mapped(source);
      part += mapped.text().substr(0, static_cast<size_t>(text.bytes) - part.size());
    }
    if (const size_t line = part.rfind('\n'); line != std::string::npos) part.resize(line + 1);
    all += part;
  }
  io::MakeDirectories(file.parent_path());
  io::WriteFileAtomic(file, all);
  return file;
}

}  // namespace

DistillText ReadDistillText(const nlohmann::json& plan, const std::string& source) {
  return {plan.at("corpora").get<std::vector<std::string>>(),
          io::GetJson<int64_t>(plan, "train_bytes", source)};
}

fs::path WriteDistillResults(const DistillOptions& options, const std::string& name, const std::string& title,
                             const std::string& command, const nlohmann::ordered_json& figures) {
  nlohmann::ordered_json out = {
      {"title", title}, {"command", command}, {"commit", Commit()}, {"cpu", CpuName()}};
  out.update(figures);
  const fs::path directory = options.out / name;
  io::MakeDirectories(directory);
  io::WriteFileAtomic(directory / "results.json", out.dump(1) + "\n");
  return directory;
}

bool Chosen(const DistillOptions& options, const std::string& name) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), name) != options.only.end();
}

void CheckChosen(const DistillOptions& options, const std::vector<std::string>& names) {
  for (const std::string& name : options.only) {
    std::string known;
    for (const std::string& other : names) known += StrCat(known.empty() ? "" : "; ", other);
    Check(std::find(names.begin(), names.end(), name) != names.end(), "the plan has no \"", name,
          "\"; it has: ", known);
  }
}

std::string FileName(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (IsLetter(c) || IsDigit(c)) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

Command DistillCommand(const DistillOptions& options, const DistillText& text, const std::string& student,
                       const fs::path& run, const std::string& stage,
                       const std::vector<std::string>& settings) {
  Command command;
  command.args = {"distill",
                  "--teacher",
                  options.teacher.string(),
                  "--student",
                  student,
                  "--data",
                  TrainingText(text, options).string(),
                  "--valid",
                  FindCorpus(options.data, text.corpora.front()).valid.string(),
                  "--out",
                  run.string(),
                  "--cache",
                  (options.out / "teacher-layers").string(),
                  "--stage",
                  stage,
                  "--threads",
                  std::to_string(options.threads)};
  for (const auto* list : {&settings, &options.settings}) {
    for (const std::string& setting : *list) {
      if (!setting.starts_with("--")) command.args.push_back("--set");
      command.args.push_back(setting);
    }
  }
  command.output = run / (stage + ".txt");
  return command;
}

std::vector<nlohmann::json> MetricsOf(const fs::path& run, const std::string& stage) {
  const fs::path file = run / stage / "metrics.jsonl";
  if (!fs::exists(file)) return {};
  std::vector<nlohmann::json> rows;
  std::istringstream lines(io::ReadFile(file, kMaxMetrics));
  for (std::string line; std::getline(lines, line);) rows.push_back(io::ParseJson(line, file.string()));
  return rows;
}

}  // namespace lattice::reproduce
