// Runs the stages of a conversion, and collects what they reached.
#include "reproduce/conversion.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/json.h"
#include "reproduce/corpus.h"
#include "reproduce/provenance.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kTasks = "tasks";
constexpr const char* kTeacher = "teacher";

fs::path RunOf(const DistillOptions& options, const ConversionStudent& student) {
  return options.out / FileName(student.name);
}

Command StageCommand(const ConversionPlan& plan, const DistillOptions& options,
                     const ConversionStudent& student, const std::string& stage) {
  // The last one of a key counts.
  std::vector<std::string> settings;
  const auto add = [&](const std::vector<std::string>& more) {
    settings.insert(settings.end(), more.begin(), more.end());
  };
  if (const auto found = plan.of_stage.find(stage); found != plan.of_stage.end()) add(found->second);
  add(student.settings);
  if (const auto found = student.of_stage.find(stage); found != student.of_stage.end()) add(found->second);
  return DistillCommand(options, plan.text, student.student, RunOf(options, student), stage, settings);
}

// What a model is called among the evaluations: the teacher, or a student behind a stage.
std::string ModelName(const ConversionStudent& student, const std::string& stage) {
  return FileName(student.name) + "-" + stage;
}

fs::path EvaluationFile(const DistillOptions& options, const std::string& model, const std::string& what) {
  return options.out / "evaluations" / StrCat(model, "-", FileName(what), ".json");
}

Command PerplexityCommand(const DistillOptions& options, const fs::path& model, const ConversionText& text,
                          const fs::path& output) {
  return {
      {"eval", "ppl", "--model", model.string(), "--data",
       FindCorpus(options.data, text.corpus).valid.string(), "--context", std::to_string(text.context),
       "--max-tokens", std::to_string(text.tokens), "--threads", std::to_string(options.threads), "--json"},
      output};
}

Command TasksCommand(const ConversionPlan& plan, const DistillOptions& options, const fs::path& model,
                     const fs::path& output) {
  std::string names;
  for (const auto& [name, chance] : plan.tasks) names += StrCat(names.empty() ? "" : ",", name);
  return {
      {"eval", "tasks", "--model", model.string(), "--tasks-dir", options.tasks.string(), "--tasks", names,
       "--limit", std::to_string(plan.task_items), "--threads", std::to_string(options.threads), "--json"},
      output};
}

// The perplexities of a model, by text, with the losses by position; texts that were not evaluated are left out.
ordered_json ReadTexts(const ConversionPlan& plan, const DistillOptions& options, const std::string& model) {
  ordered_json out = ordered_json::array();
  for (const ConversionText& text : plan.texts) {
    const fs::path file = EvaluationFile(options, model, text.name);
    if (!fs::exists(file)) continue;
    const json result = io::ReadJson(file).at("results").at(0);
    out.push_back({{"text", text.name},
                   {"context", result.at("context")},
                   {"perplexity", result.at("perplexity")},
                   {"tokens", result.at("tokens")},
                   {"curve", result.at("curve")}});
  }
  return out;
}

// The accuracies of a model, by task, or null where they were not measured.
ordered_json ReadTasks(const ConversionPlan& plan, const DistillOptions& options, const std::string& model) {
  const fs::path file = EvaluationFile(options, model, kTasks);
  if (!fs::exists(file)) return nullptr;
  ordered_json out = ordered_json::object();
  const json results = io::ReadJson(file).at("results");
  for (const auto& [task, chance] : plan.tasks) {
    if (!results.contains(task)) continue;
    const json& figures = results.at(task);
    out[task] = {{"chance", chance},
                 {"acc", figures.at("acc")},
                 {"acc_stderr", figures.at("acc_stderr")},
                 {"n", figures.at("n")}};
  }
  return out;
}

// The mean error of the layers that learn, over all tokens; the loss also has the first tokens by themselves.
double LayerError(const json& row) {
  double sum = 0;
  int64_t layers = 0;
  for (const auto error : row.at("layer_errors").get<std::vector<double>>()) {
    sum += error;
    layers += error > 0;
  }
  return sum / static_cast<double>(std::max<int64_t>(layers, 1));
}

// Validations of a stage as [tokens, perplexity], the loss and speed of its last step, and of imitation the error of the
// layers in its first and its last one.
ordered_json ReadStage(const fs::path& run, const std::string& stage) {
  const std::vector<json> rows = MetricsOf(run, stage);
  if (rows.empty()) return nullptr;
  ordered_json out = {{"stage", stage}, {"validations", ordered_json::array()}};
  double tokens_per_step = 0;
  for (const json& row : rows) {
    if (row.contains("tokens") && row.contains("loss")) {
      tokens_per_step = row.at("tokens").get<double>() / row.at("step").get<double>();
      for (const char* key : {"loss", "tokens", "tokens_per_s", "elapsed"}) out[key] = row.at(key);
      if (row.contains("layer_errors")) {
        out["error"] = LayerError(row);
        if (!out.contains("first_error")) out["first_error"] = out["error"];
      }
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
  plan.text = ReadDistillText(value, source);
  plan.task_items = io::GetJson<int64_t>(value, "task_items", source);
  plan.tasks = value.at("tasks").get<std::map<std::string, double>>();
  plan.of_stage = value.at("stages").get<std::map<std::string, std::vector<std::string>>>();
  for (const json& text : value.at("texts")) {
    plan.texts.push_back(
        {io::GetJson<std::string>(text, "name", source), io::GetJson<std::string>(text, "corpus", source),
         io::GetJson<int64_t>(text, "context", source), io::GetJson<int64_t>(text, "tokens", source)});
  }
  for (const json& student : value.at("students")) {
    plan.students.push_back({io::GetJson<std::string>(student, "name", source),
                             io::GetJson<std::string>(student, "student", source),
                             student.at("settings").get<std::vector<std::string>>(),
                             student.at("stages").get<std::vector<std::string>>(),
                             student.at("texts").get<std::vector<std::string>>(),
                             student.value("tasks", false),
                             student.value("of_stage", std::map<std::string, std::vector<std::string>>())});
  }
  return plan;
}

namespace {

// The steps of a conversion, each done once.
class Conversion {
 public:
  Conversion(const ConversionPlan& plan, const DistillOptions& options, const RunnerOptions& how)
      : plan_(plan), options_(options), how_(how) {}

  Outcome Make() {
    io::MakeDirectories(options_.out / "evaluations");
    if (MakeStages() && MeasureOthers()) RunTasks();
    return outcome_;
  }

 private:
  // False: stopped or failed, see outcome_.
  bool Do(const std::string& what, const Command& command) {
    how_.report(what);
    outcome_ = RunCommand(command, options_.out / "errors.txt", how_);
    return outcome_ == Outcome::kDone;
  }

  // The output gets its name when it is complete: one that was stopped is made again.
  bool Evaluate(const std::string& what, Command command) {
    const fs::path complete = command.output;
    command.output += ".part";
    if (!Do(what, command)) return false;
    io::Rename(command.output, complete);
    return true;
  }

  bool MakeStages() {
    if (!Measure(kTeacher, options_.teacher, plan_.texts.front())) return false;
    size_t most = 0;
    for (const ConversionStudent& student : plan_.students) most = std::max(most, student.stages.size());
    for (size_t place = 0; place < most; ++place) {
      for (const ConversionStudent& student : plan_.students) {
        if (place < student.stages.size() && !MakeStage(student, student.stages[place])) return false;
      }
    }
    return true;
  }

  bool MakeStage(const ConversionStudent& student, const std::string& stage) {
    if (!Do(StrCat(student.name, ": ", stage), StageCommand(plan_, options_, student, stage))) return false;
    return Measure(ModelName(student, stage), RunOf(options_, student) / stage, plan_.texts.front());
  }

  // Perplexity on one text.
  bool Measure(const std::string& name, const fs::path& model, const ConversionText& text) {
    const fs::path file = EvaluationFile(options_, name, text.name);
    if (fs::exists(file)) return true;
    return Evaluate(StrCat(name, ": perplexity on ", text.name),
                    PerplexityCommand(options_, model, text, file));
  }

  // The other texts, for the teacher and the last stage of the students that are measured there.
  bool MeasureOthers() {
    for (size_t i = 1; i < plan_.texts.size(); ++i) {
      const ConversionText& text = plan_.texts[i];
      if (!Measure(kTeacher, options_.teacher, text)) return false;
      for (const ConversionStudent& student : plan_.students) {
        if (std::find(student.texts.begin(), student.texts.end(), text.name) == student.texts.end()) continue;
        const std::string& last = student.stages.back();
        if (!Measure(ModelName(student, last), RunOf(options_, student) / last, text)) return false;
      }
    }
    return true;
  }

  bool RunTasks() {
    if (options_.tasks.empty()) return true;
    const auto run = [&](const std::string& name, const fs::path& model) {
      const fs::path file = EvaluationFile(options_, name, kTasks);
      return fs::exists(file) || Evaluate(name + ": tasks", TasksCommand(plan_, options_, model, file));
    };
    if (!run(kTeacher, options_.teacher)) return false;
    for (const ConversionStudent& student : plan_.students) {
      const std::string& last = student.stages.back();
      if (student.tasks && !run(ModelName(student, last), RunOf(options_, student) / last)) return false;
    }
    return true;
  }

  const ConversionPlan& plan_;
  const DistillOptions& options_;
  const RunnerOptions& how_;
  Outcome outcome_ = Outcome::kDone;
};

// The students of earlier results, by name, each with the commit and processor that it was made with.
ordered_json StudentsOf(const json& results) {
  ordered_json out = ordered_json::object();
  for (const json& student : results.at("students")) {
    ordered_json& entry = out[student.at("name").get<std::string>()] = student;
    for (const char* key : {"commit", "cpu"}) {
      if (!entry.contains(key)) entry[key] = results.at(key);
    }
  }
  return out;
}

}  // namespace

Outcome MakeConversion(const ConversionPlan& plan, const DistillOptions& options, const RunnerOptions& how) {
  std::vector<std::string> names;
  for (const ConversionStudent& student : plan.students) names.push_back(student.name);
  CheckChosen(options, names);
  ConversionPlan chosen = plan;
  std::erase_if(chosen.students,
                [&](const ConversionStudent& student) { return !Chosen(options, student.name); });
  return Conversion(chosen, options, how).Make();
}

void WriteConversion(const ConversionPlan& plan, const DistillOptions& options, const std::string& command) {
  const fs::path file = options.out / "conversion" / "results.json";
  const json earlier = fs::exists(file) ? io::ReadJson(file)
                                        : json{{"students", json::array()},
                                               {"teacher", {{"texts", json::array()}, {"tasks", nullptr}}}};
  const ordered_json earlier_students = StudentsOf(earlier);
  ordered_json students = ordered_json::array();
  for (const ConversionStudent& student : plan.students) {
    ordered_json stages = ordered_json::array();
    for (const std::string& stage : student.stages) {
      ordered_json read = ReadStage(RunOf(options, student), stage);
      if (read.is_null()) continue;
      read["texts"] = ReadTexts(plan, options, ModelName(student, stage));
      stages.push_back(std::move(read));
    }
    if (!stages.empty()) {
      students.push_back({{"name", student.name},
                          {"commit", Commit()},
                          {"cpu", CpuName()},
                          {"stages", std::move(stages)},
                          {"tasks", ReadTasks(plan, options, ModelName(student, student.stages.back()))}});
    } else if (earlier_students.contains(student.name)) {
      students.push_back(earlier_students.at(student.name));
    }
  }
  ordered_json texts = ReadTexts(plan, options, kTeacher), tasks = ReadTasks(plan, options, kTeacher);
  for (const json& text : earlier.at("teacher").at("texts")) {
    const auto name = text.at("text").get<std::string>();
    const auto same = [&](const ordered_json& one) { return one.at("text") == name; };
    if (std::none_of(texts.begin(), texts.end(), same)) texts.push_back(ordered_json(text));
  }
  if (tasks.is_null()) tasks = earlier.at("teacher").at("tasks");
  const ordered_json figures = {{"teacher", {{"texts", std::move(texts)}, {"tasks", std::move(tasks)}}},
                                {"students", std::move(students)}};
  DrawConversion(WriteDistillResults(options, "conversion", plan.title, command, figures));
}

}  // namespace lattice::reproduce
