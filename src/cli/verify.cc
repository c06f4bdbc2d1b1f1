// `lattice verify`: certifies that the runtime computes what the torch model computes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/command.h"
#include "cli/novels.h"
#include "cli/verify_checks.h"
#include "io/file.h"
#include "runs/run_directory.h"
#include "runtime/weights.h"
#include "text/tokenizer.h"

namespace lattice::cli {
namespace {

using nlohmann::ordered_json;
using runtime::WeightFormat;

// Far above the rounding errors of float32, and far below the effect of a wrong formula.
constexpr double kTolerance = 1e-4;
constexpr int64_t kLeastTokens = 64;

struct VerifyFlags {
  std::string model;
  std::string data;
  int64_t kib = 16;
  int64_t compared = 256;
  int64_t generated = 128;
  int threads = 0;
  bool json = false;
};

struct Certificate {
  int64_t tokens = 0;
  VerifyParts parts;
  double scale = 0;
  double torch_nats = 0;
  std::vector<std::pair<WeightFormat, FormatFigures>> formats;

  bool Good() const {
    return formats[0].second.to_torch.Largest() <= kTolerance && std::isfinite(formats[0].second.nats);
  }
};

std::vector<int32_t> ReadTokens(const VerifyFlags& options, const std::filesystem::path& checkpoint) {
  const std::filesystem::path data =
      options.data.empty() ? FindNovels() / "valid" / "persuasion.txt" : std::filesystem::path(options.data);
  std::string text = io::ReadFile(data);
  text.resize(std::min(text.size(), static_cast<size_t>(options.kib) * 1024));
  std::vector<int32_t> tokens = text::OpenTokenizer(checkpoint.string())->Encode(text);
  if (static_cast<int64_t>(tokens.size()) < kLeastTokens) {
    throw UsageError(StrCat("[verify] ", data.string(), " gives ", tokens.size(),
                            " tokens; verify needs at least ", kLeastTokens,
                            ": choose a longer text with --data"));
  }
  return tokens;
}

Certificate Make(const VerifyFlags& options) {
  const std::filesystem::path checkpoint = runs::FindCheckpoint(options.model);
  // Loaded first, to refuse what the runtime cannot compute before torch works for minutes.
  const auto exact = runtime::Model::Load(checkpoint, WeightFormat::kF32);
  const std::vector<int32_t> tokens = ReadTokens(options, checkpoint);
  Certificate result;
  result.tokens = static_cast<int64_t>(tokens.size());
  result.parts = {std::min(options.compared, result.tokens), kLeastTokens / 2, options.generated};
  const TorchReference reference = MakeReference(checkpoint, tokens, result.parts, options.threads);
  result.scale = LogitScale(reference);
  result.torch_nats = reference.nats;
  for (const WeightFormat format :
       {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kInt8, WeightFormat::kInt4}) {
    const auto model = format == WeightFormat::kF32 ? exact : runtime::Model::Load(checkpoint, format);
    result.formats.emplace_back(format, CheckFormat(model, tokens, result.parts, reference, options.threads));
  }
  return result;
}

ordered_json ToJson(const Certificate& all) {
  ordered_json formats = ordered_json::array();
  for (const auto& [format, figures] : all.formats) {
    ordered_json greedy = nullptr;
    if (figures.first_greedy_difference) greedy = *figures.first_greedy_difference;
    formats.push_back({{"format", runtime::Name(format)},
                       {"difference_to_torch",
                        {{"prefill", figures.to_torch.prefill},
                         {"steps", figures.to_torch.steps},
                         {"loaded", figures.to_torch.loaded},
                         {"batched", figures.to_torch.batched}}},
                       {"same_bits_every_way", figures.same_bits},
                       {"perplexity", std::exp(figures.nats)},
                       {"perplexity_cost_percent", figures.perplexity_cost},
                       {"first_greedy_difference", greedy}});
  }
  return {{"tokens", all.tokens},
          {"compared_tokens", all.parts.compared},
          {"greedy_tokens", all.parts.generated},
          {"logit_scale", all.scale},
          {"tolerance", kTolerance},
          {"torch_perplexity", std::exp(all.torch_nats)},
          {"formats", formats},
          {"ok", all.Good()}};
}

void Print(const Certificate& all) {
  std::cout << "torch: perplexity " << Fixed(std::exp(all.torch_nats), 4) << " on " << Grouped(all.tokens)
            << " tokens; largest logit " << Fixed(all.scale, 2) << " in the first " << all.parts.compared
            << "\n";
  for (const auto& [format, figures] : all.formats) {
    const Differences& d = figures.to_torch;
    const auto number = [](double value) { return Short(value, 2); };
    std::cout << runtime::Name(format) << ":\n  logits differ from torch's by " << number(d.prefill)
              << " of the largest (steps " << number(d.steps) << ", after a file " << number(d.loaded)
              << ", in a batch " << number(d.batched) << "); "
              << (figures.same_bits ? "the same bits every way" : "NOT the same bits every way") << "\n"
              << "  perplexity " << Fixed(std::exp(figures.nats), 4) << ", "
              << Fixed(figures.perplexity_cost, 3) << " % above torch's\n  greedy text: "
              << (figures.first_greedy_difference
                      ? StrCat("another from token ", *figures.first_greedy_difference, " on")
                      : StrCat("the same for ", all.parts.generated, " tokens"))
              << "\n";
  }
  std::cout << (all.Good() ? "verified: float32 is within " : "FAILED: float32 is not within ")
            << Short(kTolerance, 1) << " of torch\n";
}

int Verify(const VerifyFlags& options) {
  const Certificate certificate = Make(options);
  if (options.json) {
    std::cout << ToJson(certificate).dump(2) << "\n";
  } else {
    Print(certificate);
  }
  return certificate.Good() ? 0 : 1;
}

}  // namespace

void AddVerify(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("verify", "Compare the runtime with the torch model, on your weights and machine");
  const auto options = std::make_shared<VerifyFlags>();
  AddPlugins(*command);
  command->add_option("model", options->model, "run directory or checkpoint")->required();
  command->add_option("--data", options->data, "text to compare on; default: the novel of data/austen/valid");
  command->add_option("--kib", options->kib, "how much of the text counts for the perplexity")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_option("--tokens", options->compared, "tokens whose logits are compared")
      ->capture_default_str()
      ->check(CLI::Range(kLeastTokens, int64_t{8192}));
  command->add_option("--greedy", options->generated, "length of the greedy texts")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_option("--threads", options->threads, "threads; default: all cores")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Exit code 1 when float32 logits differ by more than 1e-4 of the largest.\n"
      "Example: ./lattice verify runs/book-lattice_dec-1 --kib 64");
  command->callback([options, &chosen] { chosen = [options] { return Verify(*options); }; });
}

}  // namespace lattice::cli
