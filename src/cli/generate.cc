// `lattice generate`: continues a text with a trained model.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/format.h"
#include "cli/between.h"
#include "cli/command.h"
#include "cli/open_model.h"
#include "cli/standard_input.h"
#include "io/json.h"
#include "runtime/generator.h"

namespace lattice::cli {
namespace {

struct GenerateFlags {
  std::string model;
  std::string prompt;
  int threads = 0;
  bool json = false;
  runtime::GenerationOptions generation;
};

// Prints the prompt to stderr, so that stdout has nothing but the model's text. On a terminal that text
// continues on the same line.
void ShowPrompt(const std::string& prompt) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const bool goes_on = terminal && ::isatty(STDOUT_FILENO) != 0;
  std::cerr << (terminal ? "\033[2m" : "") << prompt << (terminal ? "\033[0m" : "") << (goes_on ? "" : "\n")
            << std::flush;
}

// One object with the text and what it took.
void PrintJson(const std::string& text, const runtime::GenerationFigures& figures) {
  std::cout << io::DumpJson({{"text", text},
                             {"prompt_tokens", figures.prompt_tokens},
                             {"prompt_seconds", figures.prompt_seconds},
                             {"tokens", figures.tokens},
                             {"seconds", figures.seconds}})
            << std::endl;
}

int Generate(const GenerateFlags& options) {
  const std::string prompt = TextOrInput(options.prompt);
  OpenedModel opened = OpenModel(options.model);
  runtime::Generator generator(opened.model, std::move(opened.tokenizer), options.threads);
  if (options.prompt != "-" && !options.json) ShowPrompt(prompt);
  std::string all;
  const runtime::GenerationFigures figures =
      generator.Generate(prompt, options.generation, [&](std::string_view text) {
        if (options.json) {
          all += text;
        } else {
          std::cout << text << std::flush;
        }
      });
  if (options.json) {
    PrintJson(all, figures);
    return 0;
  }
  std::cout << std::endl;
  std::cerr << "(" << figures.prompt_tokens << " tokens read in " << DurationText(figures.prompt_seconds)
            << ", " << figures.tokens << " made, "
            << CountText(static_cast<double>(figures.tokens) / std::max(figures.seconds, 1e-9))
            << " tokens/s)\n";
  return 0;
}

void AddSampling(CLI::App& command, runtime::SamplerOptions& sampler) {
  command.add_option("--temperature", sampler.temperature, "0: always the most likely token")
      ->capture_default_str()
      ->check(Between(0.0, 100.0));
  command.add_option("--top-k", sampler.top_k, "choose among the k most likely; 0: among all")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
  command.add_option("--top-p", sampler.top_p, "choose among the most likely with this probability together")
      ->capture_default_str()
      ->check(Between(0.0, 1.0));
  command
      .add_option("--min-p", sampler.min_p,
                  "leave out what is less likely than this share of the most likely")
      ->capture_default_str()
      ->check(Between(0.0, 1.0));
  command
      .add_option("--repetition-penalty", sampler.repetition_penalty,
                  "makes the last 64 tokens less likely; 1: off")
      ->capture_default_str()
      ->check(Between(0.01, 100.0));
  command.add_option("--seed", sampler.seed, "the same seed gives the same text")->capture_default_str();
}

}  // namespace

void AddGenerate(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("generate", "Continue a text with a trained model");
  const auto options = std::make_shared<GenerateFlags>();
  AddPlugins(*command);
  command->add_option("--model", options->model, "run directory or checkpoint")->required();
  command->add_option("--prompt", options->prompt,
                      "text to continue; - reads standard input; without one a new document begins");
  command->add_option("--tokens", options->generation.tokens, "tokens to make")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  AddSampling(*command, options->generation.sampler);
  command->add_option("--threads", options->threads, "threads; default: all cores")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", options->json, "print one object with the text, the tokens and the seconds");
  command->footer(
      "Example: ./lattice generate --model runs/book-lattice_dec-1 --prompt \"It was\" --tokens 200 --seed "
      "1");
  command->callback([options, &chosen] { chosen = [options] { return Generate(*options); }; });
}

}  // namespace lattice::cli
