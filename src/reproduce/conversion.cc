// Runs the stages of a conversion, and collects what they reached.
#include "reproduce/conversion.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/json.h"
#include "reproduce/provenance.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kMaxMetrics = size_t{256} << 20;

// A name as that of a directory.
std::string FileName(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

fs::path RunOf(const ConversionOptions& options, const ConversionStudent& student) {
  return options.out / FileName(student.name);
}

Command StageCommand(const ConversionOptions& options, const ConversionStudent& student,
                     const std::string& stage) {
  const fs::path run = RunOf(options, student);
  Command command;
  command.args = {"distill",
                  "--teacher",
                  options.teacher.string(),
                  "--student",
                  student.student,
                  "--data",
                  (options.data / "train.txt").string(),
                  "--valid",
                  (options.data / "valid.txt").string(),
                  "--out",
                  run.string(),
                  "--stage",
                  stage,
                  "--threads",
                  std::to_string(options.threads)};
  for (const auto* settings : {&student.settings, &options.settings}) {
    for (const std::string& setting : *settings) {
      command.args.push_back("--set");
      command.args.push_back(setting);
    }
  }
  command.output = run / (stage + ".txt");
  return command;
}

Command EvalCommand(const ConversionPlan& plan, const ConversionOptions& options, const fs::path& model,
                    const fs::path& output) {
  std::string contexts;
  for (const int64_t context : plan.contexts) contexts += StrCat(contexts.empty() ? "" : ",", context);
  return {{"eval", "ppl", "--model", model.string(), "--data", (options.data / "valid.txt").string(),
           "--context", contexts, "--max-tokens", std::to_string(plan.eval_tokens), "--threads",
           std::to_string(options.threads), "--json"},
          output};
}

fs::path Evaluation(const ConversionOptions& options, const std::string& name) {
  return options.out / "evaluations" / (FileName(name) + ".json");
}

// Perplexities and losses by position, or null where the model has not been evaluated.
ordered_json ReadEvaluation(const fs::path& file) {
  if (!fs::exists(file)) return nullptr;
  const json evaluated = io::ReadJson(file);
  ordered_json out = ordered_json::array();
  for (const json& result : evaluated.at("results")) {
    out.push_back({{"context", result.at("context")},
                   {"perplexity", result.at("perplexity")},
                   {"tokens", result.at("tokens")},
                   {"curve", result.at("curve")}});
  }
  return out;
}

// Validations of a stage as [tokens, perplexity], and the loss and speed of its last step.
ordered_json ReadStage(const fs::path& run, const std::string& stage) {
  const fs::path file = run / stage / "metrics.jsonl";
  if (!fs::exists(file)) return nullptr;
  ordered_json out = {{"stage", stage}, {"validations", ordered_json::array()}};
  double tokens_per_step = 0;
  std::istringstream lines(io::ReadFile(file, kMaxMetrics));
  for (std::string line; std::getline(lines, line);) {
    const json row = io::ParseJson(line, file.string());
    if (row.contains("tokens") && row.contains("loss")) {
      tokens_per_step = row.at("tokens").get<double>() / row.at("step").get<double>();
      for (const char* key : {"loss", "tokens", "tokens_per_s", "elapsed"}) out[key] = row.at(key);
      if (!out.contains("first_loss")) out["first_loss"] = row.at("loss");
    } else if (row.contains("valid_perplexity")) {
      out["validations"].push_back(
          {row.at("step").get<double>() * tokens_per_step, row.at("valid_perplexity")});
    }
  }
  return out;
}

}  // namespace

ConversionPlan ReadConversionPlan(const fs::path& file) {
  const json value = io::ReadJson(file);
  const std::string source = file.string();
  ConversionPlan plan;
  plan.title = io::GetJson<std::string>(value, "title", source);
  plan.contexts = value.at("contexts").get<std::vector<int64_t>>();
  plan.eval_tokens = io::GetJson<int64_t>(value, "eval_tokens", source);
  for (const json& student : value.at("students")) {
    plan.students.push_back({io::GetJson<std::string>(student, "name", source),
                             io::GetJson<std::string>(student, "student", source),
                             student.at("settings").get<std::vector<std::string>>(),
                             student.at("stages").get<std::vector<std::string>>()});
  }
  return plan;
}

Outcome MakeConversion(const ConversionPlan& plan, const ConversionOptions& options,
                       const RunnerOptions& how) {
  io::MakeDirectories(options.out / "evaluations");
  const auto run = [&](const std::string& what, const Command& command) {
    how.report(what);
    return RunCommand(command, options.out / "errors.txt", how);
  };
  const fs::path of_teacher = Evaluation(options, "teacher");
  if (!fs::exists(of_teacher)) {
    const Outcome outcome =
        run("teacher: perplexity", EvalCommand(plan, options, options.teacher, of_teacher));
    if (outcome != Outcome::kDone) return outcome;
  }
  for (const ConversionStudent& student : plan.students) {
    for (const std::string& stage : student.stages) {
      const Outcome made = run(StrCat(student.name, ": ", stage), StageCommand(options, student, stage));
      if (made != Outcome::kDone) return made;
    }
    const fs::path evaluation = Evaluation(options, student.name);
    if (fs::exists(evaluation)) continue;
    const fs::path model = RunOf(options, student) / student.stages.back();
    const Outcome outcome = run(student.name + ": perplexity", EvalCommand(plan, options, model, evaluation));
    if (outcome != Outcome::kDone) return outcome;
  }
  return Outcome::kDone;
}

void WriteConversion(const ConversionPlan& plan, const ConversionOptions& options,
                     const std::string& command) {
  ordered_json students = ordered_json::array();
  for (const ConversionStudent& student : plan.students) {
    ordered_json stages = ordered_json::array();
    for (const std::string& stage : student.stages) {
      ordered_json read = ReadStage(RunOf(options, student), stage);
      if (!read.is_null()) stages.push_back(std::move(read));
    }
    if (stages.empty()) continue;
    students.push_back({{"name", student.name},
                        {"stages", std::move(stages)},
                        {"evaluation", ReadEvaluation(Evaluation(options, student.name))}});
  }
  const ordered_json out = {{"title", plan.title},
                            {"command", command},
                            {"commit", Commit()},
                            {"cpu", CpuName()},
                            {"teacher", ReadEvaluation(Evaluation(options, "teacher"))},
                            {"students", std::move(students)}};
  const fs::path directory = options.out / "conversion";
  io::MakeDirectories(directory);
  io::WriteFileAtomic(directory / "results.json", out.dump(1) + "\n");
  DrawConversion(directory);
}

}  // namespace lattice::reproduce
