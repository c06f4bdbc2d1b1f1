// `lattice demo`: shows a memory recall, then trains a small model, optionally beside other memories of equal
// size.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/command.h"
#include "cli/demo_recall.h"
#include "cli/next_steps.h"
#include "cli/novels.h"
#include "cli/open_model.h"
#include "model/config.h"
#include "model/tensors.h"
#include "runs/run_directory.h"
#include "runtime/generator.h"
#include "text/bytes.h"
#include "train/trainer.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 1000;
constexpr int64_t kQuickSteps = 30;
constexpr const char* kPrompt = "Captain Wentworth";

struct DemoFlags {
  std::string out;
  int threads = 0;
  bool quick = false;
  bool compare = false;
};

model::Config DemoConfig(bool quick) {
  const fs::path novels = FindNovels();
  model::Config config;
  config.data.train = (novels / "train").string();
  config.data.valid = (novels / "valid").string();
  config.train.steps = quick ? kQuickSteps : kSteps;
  config.train.warmup = quick ? 5 : 50;
  config.train.eval_every = 0;
  config.train.save_every = 0;
  if (quick) config.train.eval_tokens = 16384;
  return config;
}

train::TrainRequest Request(const DemoFlags& options, const model::Config& config) {
  train::TrainRequest request;
  request.config = config;
  request.run = options.out.empty() ? runs::NewRun("runs", "demo-" + config.model.mixer)
                                    : fs::path(options.out) / config.model.mixer;
  request.threads = options.threads;
  request.resume_command =
      StrCat(Launcher(), " train --out ", ShellWord(request.run.string()), " --resume latest");
  return request;
}

void ShowSample(const fs::path& run, int64_t tokens) {
  std::cout << "\nA sample, continuing \"" << kPrompt << "\":\n\n" << kPrompt;
  runtime::GenerationOptions options;
  options.tokens = tokens;
  options.sampler = {.temperature = 0.7, .top_k = 0, .top_p = 0.95};
  OpenedModel opened = OpenModel(run.string());
  runtime::Generator(opened.model, std::move(opened.tokenizer), 0)
      .Generate(kPrompt, options, [](std::string_view text) { std::cout << text << std::flush; });
  std::cout << "\n";
}

// Sets the width of the SwiGLU so that the model has as nearly as possible `parameters` parameters.
model::ModelConfig WithParameters(model::ModelConfig config, int64_t parameters) {
  config.vocab_size = text::BytesTokenizer::kVocabulary;
  const auto distance = [&](int64_t hidden) {
    config.hidden = hidden;
    return std::llabs(model::CountParameters(config).total - parameters);
  };
  int64_t best = 1;
  for (int64_t hidden = 1; hidden <= 8 * config.width; ++hidden) {
    if (distance(hidden) < distance(best)) best = hidden;
  }
  config.hidden = best;
  return config;
}

struct Contestant {
  std::string mixer;
  train::TrainResult result;
};

// Trains another mixer with the same number of parameters and the same time spent in steps.
Contestant Compete(const DemoFlags& options, const std::string& mixer, const train::TrainResult& lattice) {
  model::Config config = DemoConfig(options.quick);
  config.model.mixer = mixer;
  config.model = WithParameters(config.model, lattice.parameters);
  train::TrainRequest request = Request(options, config);
  const double step = train::MeasureStep(request, options.quick ? 3 : 10);
  request.config.train.steps = std::max<int64_t>(10, std::llround(lattice.step_seconds / step));
  std::cout << "\n";
  return {mixer, train::Train(request)};
}

void ShowComparison(const std::vector<Contestant>& contestants) {
  std::cout << "\nEqual parameters and time, bits per byte of the held-out novel:\n\n"
               "  memory         parameters   steps   seconds   bits/byte\n";
  for (const auto& [mixer, result] : contestants) {
    std::cout << "  " << std::left << std::setw(13) << mixer << std::right << std::setw(12)
              << Grouped(result.parameters) << std::setw(8) << result.step << std::setw(10)
              << Fixed(result.step_seconds, 0) << std::setw(12) << Fixed(result.valid_bits_per_byte, 3)
              << "\n";
  }
}

int Demo(const DemoFlags& options) {
  std::cout << "1. The memory itself\n\n";
  ShowMemory(std::cout);
  std::cout << "\n2. A language model around it, trained on five novels by Jane Austen, byte by byte\n\n";
  const train::TrainRequest request = Request(options, DemoConfig(options.quick));
  const train::TrainResult result = train::Train(request);
  if (result.stopped) return 0;
  std::cout << "\nThe held-out novel, Persuasion: " << Fixed(result.valid_bits_per_byte, 3)
            << " bits per byte (8 without a model)\n";
  ShowSample(request.run, options.quick ? 80 : 400);
  if (options.compare) {
    std::vector<Contestant> contestants = {{request.config.model.mixer, result}};
    for (const char* mixer : {"deltanet", "transformer"}) {
      contestants.push_back(Compete(options, mixer, result));
      if (contestants.back().result.stopped) return 0;
    }
    ShowComparison(contestants);
  }
  std::cout << "\n3. What to do with it\n\n" << NextSteps(request.run, "She had");
  return 0;
}

}  // namespace

void AddDemo(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("demo", "See a memory work, then train a small model and read what it writes");
  const auto options = std::make_shared<DemoFlags>();
  command->add_flag("--compare", options->compare,
                    "also train DeltaNet and a transformer, at equal parameters and time");
  command->add_flag("--quick", options->quick, "a few seconds instead of minutes; the model stays poor");
  command->add_option("--out", options->out, "directory for the runs; default: runs/demo-<mixer>-<number>");
  command->add_option("--threads", options->threads, "threads; default: all cores")
      ->check(CLI::Range(1, 4096));
  command->footer(
      "Examples:\n"
      "  ./lattice demo --compare\n"
      "  ./lattice demo --chat        a conversation with SmolLM2-135M; see ./lattice demo --chat --help");
  command->callback([options, &chosen] { chosen = [options] { return Demo(*options); }; });
}

}  // namespace lattice::cli
