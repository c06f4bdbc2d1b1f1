// `lattice eval ppl`: perplexity and bits per byte, by context length.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/corpus_tokens.h"
#include "cli/eval.h"
#include "cli/open_model.h"
#include "cli/progress_bar.h"
#include "data/token_bytes.h"
#include "eval/perplexity.h"
#include "io/file.h"
#include "plot/svg_figure.h"

namespace lattice::cli {
namespace {

struct EvalPplFlags {
  std::string model;
  std::string tokenizer;
  std::string data;
  std::vector<int64_t> contexts = {512, 1024, 2048, 4096, 8192, 16384};
  std::string state = "fresh";
  std::string svg;
  int64_t max_tokens = 0;
  int64_t batch = 0;
  int threads = 0;
  bool json = false;

  bool carried() const { return state == "carried"; }
};

// The contexts that are not longer than the text, ascending; the others are reported.
std::vector<int64_t> FittingContexts(const EvalPplFlags& options, int64_t tokens) {
  std::vector<int64_t> contexts = options.contexts;
  std::sort(contexts.begin(), contexts.end());
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
  while (!contexts.empty() && contexts.back() > tokens - 1) {
    std::cerr << "lattice: [eval] the text has " << Grouped(tokens) << " tokens, too few for a context of "
              << contexts.back() << "; left out\n";
    contexts.pop_back();
  }
  Check(!contexts.empty(), "[eval] ", options.data, " has ", tokens,
        " tokens, too few for any of the contexts; pass a longer text or a smaller --context");
  return contexts;
}

nlohmann::ordered_json ToJson(const eval::PerplexityResult& result) {
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();
  for (const eval::CurvePoint& point : result.curve)
    curve.push_back({{"from", point.from}, {"to", point.to}, {"loss", point.nats}, {"tokens", point.tokens}});
  return {{"context", result.context},
          {"perplexity", result.Perplexity()},
          {"bits_per_byte", result.BitsPerByte()},
          {"loss", result.Loss()},
          {"tokens", result.tokens},
          {"bytes", result.bytes},
          {"seconds", result.seconds},
          {"tokens_per_s", static_cast<double>(result.tokens) / std::max(result.seconds, 1e-9)},
          {"curve", curve}};
}

void PrintTable(const std::vector<eval::PerplexityResult>& results) {
  std::cout << std::setw(10) << "context" << std::setw(13) << "perplexity" << std::setw(12) << "bits/byte"
            << std::setw(14) << "nats/token" << std::setw(13) << "tokens" << std::setw(12) << "tokens/s"
            << "\n";
  for (const eval::PerplexityResult& result : results) {
    std::cout << std::setw(10) << result.context << std::setw(13) << Fixed(result.Perplexity(), 4)
              << std::setw(12) << Fixed(result.BitsPerByte(), 4) << std::setw(14) << Fixed(result.Loss(), 4)
              << std::setw(13) << Grouped(result.tokens) << std::setw(12)
              << CountText(static_cast<double>(result.tokens) / std::max(result.seconds, 1e-9)) << "\n";
  }
}

std::string Figure(const std::string& mixer, const std::vector<eval::PerplexityResult>& results) {
  plot::Panel by_context{.title = "Perplexity by context",
                         .x_label = "context, tokens",
                         .y_label = "perplexity",
                         .log_x = true,
                         .series = {{mixer, {}}}};
  plot::Panel by_position{
      .title = "Loss by position", .x_label = "tokens read before", .y_label = "nats a token", .log_x = true};
  for (const eval::PerplexityResult& result : results) {
    by_context.series[0].points.emplace_back(result.context, result.Perplexity());
    plot::Curve curve{StrCat("context ", result.context), {}};
    for (const eval::CurvePoint& point : result.curve)
      curve.points.emplace_back(static_cast<double>(point.from + point.to + 1) / 2, point.nats);
    by_position.series.push_back(curve);
  }
  return plot::SvgFigure(mixer, std::vector{by_context, by_position});
}

int EvalPpl(const EvalPplFlags& options) {
  const OpenedModel model = OpenModel(options.model, {.tokenizer = options.tokenizer});
  const std::vector<int32_t> tokens = CorpusTokens(options.data, *model.tokenizer, options.max_tokens);
  std::vector<int64_t> contexts = FittingContexts(options, static_cast<int64_t>(tokens.size()));
  // All contexts predict the same tokens, so that the figures are comparable.
  std::span<const int32_t> used = tokens;
  const int64_t longest = contexts.back();
  if (options.carried()) {
    contexts = {static_cast<int64_t>(tokens.size()) - 1};
  } else {
    used = used.first(static_cast<size_t>((static_cast<int64_t>(tokens.size()) - 1) / longest * longest + 1));
  }
  const data::TokenBytes bytes(*model.tokenizer);
  eval::PerplexityMeter meter(model.model, options.threads);
  std::vector<eval::PerplexityResult> results;
  for (const int64_t context : contexts) {
    ProgressBar bar(StrCat("context ", context));
    results.push_back(meter.Run(used, bytes,
                                {.context = context,
                                 .carry = options.carried(),
                                 .batch = options.batch,
                                 .progress = [&](int64_t done, int64_t total) { bar.Show(done, total); }}));
  }
  if (!options.svg.empty())
    io::WriteFileAtomic(options.svg, Figure(model.model->config().MixerText(), results));
  if (!options.json) {
    PrintTable(results);
    return 0;
  }
  nlohmann::ordered_json out = {{"model", model.checkpoint.string()},
                                {"mixer", model.model->config().MixerText()},
                                {"data", options.data},
                                {"state", options.state},
                                {"results", nlohmann::ordered_json::array()}};
  for (const eval::PerplexityResult& result : results) out["results"].push_back(ToJson(result));
  std::cout << out.dump(2) << "\n";
  return 0;
}

}  // namespace

void AddEvalPpl(CLI::App& eval, Chosen& chosen) {
  CLI::App* command = eval.add_subcommand("ppl", "Perplexity and bits per byte by context length");
  const auto options = std::make_shared<EvalPplFlags>();
  AddPlugins(*command);
  command->add_option("--model", options->model, "run directory or checkpoint")->required();
  command
      ->add_option("--data", options->data,
                   "text file, directory of .txt files, or directory of token shards")
      ->required();
  command->add_option("--context", options->contexts, "tokens of a window; several with commas between them")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command
      ->add_option("--state", options->state,
                   "fresh: every window begins with nothing read; carried: one state through the whole text")
      ->capture_default_str()
      ->check(CLI::IsMember({"fresh", "carried"}));
  command->add_option("--max-tokens", options->max_tokens, "only the start of the text; 0: all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  command->add_option("--tokenizer", options->tokenizer, "instead of the checkpoint's own");
  command->add_option("--batch", options->batch, "windows side by side; 0: what fits")
      ->check(CLI::Range(int64_t{0}, int64_t{512}));
  command->add_option("--threads", options->threads, "threads; default: all cores")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--json", options->json, "print JSON, with the loss by position");
  command->add_option("--svg", options->svg, "write a figure: perplexity by context, loss by position");
  command->footer(
      "Example: ./lattice eval ppl --model runs/book --data book.txt --context 512,1024,4096 --svg ppl.svg");
  command->callback([options, &chosen] { chosen = [options] { return EvalPpl(*options); }; });
}

}  // namespace lattice::cli
