// `lattice inspect`: parameters, state sizes and operations of a model or a configuration.
#include <CLI/CLI.hpp>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/command.h"
#include "cli/inspect_memory.h"
#include "cli/open_model.h"
#include "cli/origin.h"
#include "model/checkpoint.h"
#include "model/config.h"
#include "model/cost.h"
#include "model/tensors.h"
#include "runs/run_directory.h"
#include "text/tokenizer.h"

namespace lattice::cli {
namespace {

struct InspectFlags {
  std::string config;
  std::string model;
  std::vector<std::string> overrides;
  int64_t context = 0;
  bool json = false;
  MemoryOptions memory;
};

struct Subject {
  model::ModelConfig model;
  int64_t context;
};

Subject FromConfig(const InspectFlags& options) {
  return AsUsage([&] {
    model::Config config = model::LoadConfig(options.config, options.overrides);
    if (config.model.vocab_size == 0) {
      config.model.vocab_size = text::OpenTokenizer(config.data.tokenizer)->vocab_size();
    }
    return Subject{config.model, options.context > 0 ? options.context : config.train.seq_len};
  });
}

Subject FromCheckpoint(const InspectFlags& options) {
  return {OpenConfig(options.model), options.context > 0 ? options.context : 2048};
}

// Parameters by part, in the order of the parts.
std::map<model::Part, int64_t> ByPart(const model::ModelConfig& config) {
  std::map<model::Part, int64_t> parts;
  for (const model::TensorInfo& tensor : model::ModelTensors(config)) parts[tensor.part] += tensor.Elements();
  return parts;
}

void PrintJson(const Subject& subject) {
  const model::ModelConfig& config = subject.model;
  const model::ParameterCounts counts = model::CountParameters(config);
  const model::Flops flops = model::FlopsPerToken(config, subject.context);
  nlohmann::ordered_json parts;
  for (const auto& [part, count] : ByPart(config)) parts[std::string(model::Name(part))] = count;
  const nlohmann::ordered_json object = {
      {"parameters",
       {{"total", counts.total}, {"embedding", counts.embedding}, {"non_embedding", counts.non_embedding}}},
      {"parts", parts},
      {"context", subject.context},
      {"state_bytes", model::StateBytes(config, subject.context)},
      {"flops_per_token", flops.Forward()},
      {"training_flops_per_token", flops.Training()},
      {"model", nlohmann::ordered_json::parse(model::ModelToJson(config))},
  };
  std::cout << object.dump(2) << "\n";
}

void Row(const std::string& name, const std::string& figure, const std::string& note = "") {
  std::cout << std::left << std::setw(24) << name << std::right << std::setw(16) << figure << "  " << note
            << "\n";
}

void PrintTable(const Subject& subject) {
  const model::ModelConfig& config = subject.model;
  const model::ParameterCounts counts = model::CountParameters(config);
  std::cout << config.MixerText() << ": " << config.layers << " layers, width " << config.width << ", "
            << config.heads << " heads of " << config.Slots() << " slots x " << config.HeadDim()
            << ", vocabulary " << config.vocab_size << "\n\n";
  for (const auto& [part, count] : ByPart(config)) {
    const double percent = 100.0 * static_cast<double>(count) / static_cast<double>(counts.total);
    Row(std::string(model::Name(part)), Grouped(count), Fixed(percent, 1) + " %");
  }
  Row("parameters", Grouped(counts.total));
  Row("  without embedding", Grouped(counts.non_embedding));
  const int64_t state = model::StateBytes(config, subject.context);
  const bool grows = model::StateBytes(config, 2 * subject.context) != state;
  Row("state of a sequence", BytesText(state),
      grows ? StrCat("after ", subject.context, " tokens; it grows") : "whatever its length");
  const model::Flops flops = model::FlopsPerToken(config, subject.context);
  Row("flops per token", CountText(static_cast<double>(flops.Forward())),
      StrCat("forward, of it in the mixer ", CountText(static_cast<double>(flops.mixer))));
  Row("  training", CountText(static_cast<double>(flops.Training())), "forward and backward");
}

int Inspect(const InspectFlags& options) {
  if (options.model.empty() == options.config.empty()) {
    throw UsageError("pass either --config FILE or --model RUN, to say what to inspect");
  }
  if (!options.model.empty() && !options.overrides.empty()) {
    throw UsageError("--set changes a --config; a trained --model is what it is");
  }
  if (!options.memory.text.empty()) {
    if (options.model.empty())
      throw UsageError("--text needs a trained model: ./lattice inspect RUN --text ...");
    MemoryOptions memory = options.memory;
    memory.model = options.model;
    memory.json = options.json;
    return InspectMemory(memory);
  }
  if (!options.memory.html.empty()) throw UsageError("--html shows what a text does: pass --text too");
  const Subject subject = options.model.empty() ? FromConfig(options) : FromCheckpoint(options);
  if (options.json) {
    PrintJson(subject);
    return 0;
  }
  PrintTable(subject);
  if (options.model.empty()) return 0;
  if (const auto origin = foreign::ReadOrigin(runs::FindCheckpoint(options.model))) {
    std::cout << "\n";
    PrintOrigin(*origin);
  }
  return 0;
}

}  // namespace

void AddInspect(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Show parameters, state and cost of a model, or what its memory does with a text");
  const auto options = std::make_shared<InspectFlags>();
  AddPlugins(*command);
  command->add_option("--config", options->config,
                      "configuration: a file, or the name of one of configs/, such as 110m");
  command->add_option("--model,run", options->model, "run directory or checkpoint");
  command->add_option("--set", options->overrides,
                      "section.key=value, overrides the configuration; may be repeated");
  command
      ->add_option("--context", options->context,
                   "tokens of a sequence, for what depends on them; default: train.seq_len")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_flag("--json", options->json, "print JSON");
  command->add_option("--text", options->memory.text,
                      "look into the memory while it reads this; - reads standard input");
  command->add_option("--html", options->memory.html, "with --text: write a page to scrub through");
  command->add_option("--max-tokens", options->memory.max_tokens, "with --text: read only so many")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_option("--snapshots", options->memory.snapshots, "with --text: times the slots are compared")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  command->add_option("--tokenizer", options->memory.tokenizer,
                      "with --text: instead of the checkpoint's own");
  command->add_option("--threads", options->memory.threads, "with --text: threads; default: all cores")
      ->check(CLI::Range(1, 4096));
  command->footer(
      "Examples:\n"
      "  ./lattice inspect --config configs/110m.toml --set model.mixer=transformer --json\n"
      "  ./lattice inspect runs/book --text \"It was the best of times\" --html memory.html");
  command->callback([options, &chosen] { chosen = [options] { return Inspect(*options); }; });
}

}  // namespace lattice::cli
