// `./lattice bench decode` runs this: decoding, batches and prompts of the runtime.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/between.h"
#include "cli/open_model.h"
#include "cli/program.h"
#include "decode/figures.h"
#include "kernels/isa.h"
#include "model/config.h"
#include "runtime/weights.h"
#include "text/bytes.h"

namespace lattice::bench {
namespace {

struct DecodeBenchFlags {
  std::string config = "configs/110m.toml";
  std::string model;
  std::vector<std::string> overrides;
  std::vector<std::string> formats = {"float32", "bf16", "int8", "int4"};
  DecodeBenchOptions bench;
  bool json = false;
};

std::shared_ptr<const runtime::Model> Open(const DecodeBenchFlags& options, runtime::WeightFormat format) {
  if (!options.model.empty()) return cli::OpenWeights(options.model, format);
  model::ModelConfig config =
      cli::AsUsage([&] { return model::LoadConfig(options.config, options.overrides).model; });
  if (config.vocab_size == 0) config.vocab_size = text::BytesTokenizer::kVocabulary;
  return runtime::Model::Untrained(config, 1, format);
}

nlohmann::ordered_json ToJson(const std::string& format, const DecodeFigures& f) {
  nlohmann::ordered_json decode, batch;
  for (const auto& [context, rate] : f.decode) decode[std::to_string(context)] = rate;
  for (const auto& [sessions, rate] : f.batch) batch[std::to_string(sessions)] = rate;
  return {{"format", format},
          {"weight_bytes_per_token", f.weight_bytes},
          {"session_bytes", f.session_bytes},
          {"last_session_bytes", f.last_session_bytes},
          {"read_bandwidth", f.read_bandwidth},
          {"bandwidth_share", f.BandwidthShare()},
          {"decode_tokens_per_second_by_context", decode},
          {"last_context_time_against_empty", f.last_context_time},
          {"decode_tokens_per_second_by_sessions", batch},
          {"product_tokens_per_second", f.product_tokens},
          {"prefill_512_tokens_per_second", f.prefill},
          {"prefill_flops", f.prefill_rate},
          {"matmul_flops", f.product_rate},
          {"first_token_seconds", f.first_token},
          {"first_token_seconds_cached", f.first_token_cached}};
}

void Print(const std::string& format, const DecodeFigures& f) {
  std::cout << format << ": " << BytesText(f.weight_bytes) << " a token, memory reads at "
            << Fixed(f.read_bandwidth / 1e9, 1) << " GB/s, a session is " << BytesText(f.session_bytes)
            << "\n";
  for (const auto& [context, rate] : f.decode)
    std::cout << "  decode behind " << Grouped(context) << " tokens: " << Fixed(rate, 1) << " tokens/s\n";
  std::cout << "  a token there against one of an empty session: " << Fixed(f.last_context_time, 3)
            << " x the time, the session is " << BytesText(f.last_session_bytes) << "\n"
            << "  of what the bandwidth allows: " << Fixed(100 * f.BandwidthShare(), 1) << " %\n";
  for (const auto& [sessions, rate] : f.batch)
    std::cout << "  " << sessions << " sessions: " << Fixed(rate, 1) << " tokens/s, "
              << Fixed(rate / f.batch[0].second, 2) << " x\n";
  if (!f.batch.empty())
    std::cout << "  the products alone allow " << Fixed(f.product_tokens, 1) << " tokens/s, "
              << Fixed(f.product_tokens / f.batch[0].second, 2) << " x\n";
  std::cout << "  prefill of 512: " << Fixed(f.prefill, 0) << " tokens/s, " << Fixed(f.prefill_rate / 1e9, 0)
            << " of " << Fixed(f.product_rate / 1e9, 0) << " GFLOP/s of the product alone\n"
            << "  first token of a 512-token prompt: " << Fixed(1e3 * f.first_token, 1)
            << " ms, with the prefix cache " << Fixed(1e3 * f.first_token_cached, 1) << " ms\n";
}

int Bench(const DecodeBenchFlags& options) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string& name : options.formats) {
    const auto format = cli::AsUsage([&] { return runtime::FormatNamed(name); });
    const DecodeFigures figures = MeasureDecode(Open(options, format), options.bench);
    if (options.json) {
      all.push_back(ToJson(name, figures));
    } else {
      Print(name, figures);
    }
  }
  if (options.json) {
    const nlohmann::ordered_json object = {{"isa", kernels::CurrentIsa()}, {"formats", all}};
    std::cout << object.dump(2) << "\n";
  }
  return 0;
}

void AddOptions(CLI::App& app, DecodeBenchFlags& options) {
  cli::AddPlugins(app);
  app.add_option("--config", options.config, "untrained model of this configuration")->capture_default_str();
  app.add_option("--model", options.model, "run directory or checkpoint, instead of --config");
  app.add_option("--set", options.overrides, "section.key=value, overrides the configuration");
  app.add_option("--format", options.formats, "float32, bf16, int8, int4")->delimiter(',');
  app.add_option("--contexts", options.bench.contexts, "tokens read before decoding, ascending")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app.add_option("--batch", options.bench.batches, "sessions decoded together")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  app.add_option("--seconds", options.bench.seconds, "time per figure")
      ->capture_default_str()
      ->check(cli::Between(0.0, 600.0));
  app.add_option("--threads", options.bench.threads, "threads; default: all cores")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--json", options.json, "print JSON");
  app.footer("Example: ./lattice bench decode --format int8 --contexts 0,1024 --json");
}

}  // namespace
}  // namespace lattice::bench

int main(int argc, char** argv) {
  CLI::App app("Measures decoding, batches and prompts.");
  lattice::bench::DecodeBenchFlags options;
  lattice::bench::AddOptions(app, options);
  return lattice::cli::RunProgram(
      app, [&] { return lattice::bench::Bench(options); }, argc, argv);
}
