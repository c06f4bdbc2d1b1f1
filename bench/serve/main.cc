// `./lattice bench serve` runs this: a server and its clients in one process, on loopback.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/format.h"
#include "cli/open_model.h"
#include "cli/program.h"
#include "model/config.h"
#include "runtime/model.h"
#include "serve/figures.h"
#include "serve/store_figures.h"
#include "text/bytes.h"
#include "text/tokenizer.h"

namespace lattice::bench {
namespace {

struct ServeBenchFlags {
  std::string config = "configs/tiny.toml", model;
  ServeBenchOptions bench;
  bool json = false;
  bool stores = false;
  int64_t busy = 64;  // sessions that are never idle
  int64_t many = 0;   // sessions in a directory; 0: measure something else
  std::string redis;  // address; empty: without
  int port = 0;       // of a server that runs already; 0: measure one of this process
};

server::ServedModel Open(const ServeBenchFlags& options) {
  if (!options.model.empty()) {
    cli::OpenedModel opened = cli::OpenModel(options.model);
    return {"bench", opened.model, std::move(opened.tokenizer), 0};
  }
  model::ModelConfig config = cli::AsUsage([&] { return model::LoadConfig(options.config, {}).model; });
  auto tokenizer = std::make_shared<text::BytesTokenizer>();
  if (config.vocab_size == 0) config.vocab_size = tokenizer->vocab_size();
  return {"bench", runtime::Model::Untrained(config, 1, runtime::WeightFormat::kF32), std::move(tokenizer),
          0};
}

nlohmann::ordered_json ToJson(const LoadFigures& f) {
  return {{"completed", f.completed},
          {"rejected", f.rejected},
          {"failed", f.failed},
          {"seconds", f.seconds},
          {"tokens_per_second", f.tokens_per_second},
          {"first_token_p50", f.first_token_p50},
          {"first_token_p99", f.first_token_p99},
          {"between_tokens_p99", f.between_tokens_p99},
          {"rejection_p50", f.rejection_p50},
          {"rejection_p99", f.rejection_p99},
          {"rejection_max", f.rejection_max}};
}

nlohmann::ordered_json ToJson(const ServeFigures& f) {
  return {{"streams", ToJson(f.streams)},       {"full", ToJson(f.full)},
          {"overloaded", ToJson(f.overloaded)}, {"sessions", f.sessions},
          {"session_bytes", f.session_bytes},   {"sessions_grown", f.sessions_grown},
          {"soak_resident_bytes", f.soak}};
}

void Print(const char* title, const LoadFigures& f) {
  const auto ms = [](double seconds) { return Fixed(1e3 * seconds, 1) + " ms"; };
  std::cout << title << ": " << f.completed << " completed, " << f.failed << " failed, "
            << Fixed(f.tokens_per_second, 0) << " tokens/s\n  first token " << ms(f.first_token_p50)
            << " (p99 " << ms(f.first_token_p99) << "), between tokens p99 " << ms(f.between_tokens_p99)
            << "\n";
  if (f.rejected > 0)
    std::cout << "  " << f.rejected << " rejected, answered in " << ms(f.rejection_p50) << " (p99 "
              << ms(f.rejection_p99) << ", slowest " << ms(f.rejection_max) << ")\n";
}

void Print(const ServeFigures& f) {
  if (f.streams.seconds > 0) Print("all streams at once", f.streams);
  if (f.full.seconds > 0) {
    Print("as many clients as places", f.full);
    Print("four times as many clients", f.overloaded);
    std::cout << "  of the throughput before: "
              << Fixed(100 * f.overloaded.tokens_per_second / f.full.tokens_per_second, 1) << " %\n";
  }
  if (f.sessions > 0)
    std::cout << f.sessions << " idle sessions: " << BytesText(f.sessions_grown) << ", their states are "
              << BytesText(f.sessions * f.session_bytes) << "\n";
  for (size_t i = 0; i < f.soak.size(); ++i)
    std::cout << (i == 0 ? "resident in the course of the soak: " : ", ") << BytesText(f.soak[i])
              << (i + 1 == f.soak.size() ? "\n" : "");
}

int BenchStores(const ServeBenchFlags& options) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const StoreFigures& f : MeasureStores(Open(options), options.bench, options.busy, options.redis)) {
    all.push_back({{"store", f.store},
                   {"resume_p50", f.resume_p50},
                   {"resume_p99", f.resume_p99},
                   {"stored_p50", f.stored_p50},
                   {"tokens_per_second", f.tokens_per_second},
                   {"written_bytes", f.written_bytes}});
    if (!options.json)
      std::cout << f.store << ": a token of an idle session in " << Fixed(1e3 * f.resume_p50, 1)
                << " ms (p99 " << Fixed(1e3 * f.resume_p99, 1) << "); " << options.busy
                << " busy ones, tokens/s:";
    for (const double rate : f.tokens_per_second)
      if (!options.json) std::cout << " " << Fixed(rate, 0);
    if (!options.json) std::cout << "\n";
  }
  if (options.json) std::cout << nlohmann::ordered_json{{"stores", all}}.dump(2) << "\n";
  return 0;
}

int BenchMany(const ServeBenchFlags& options) {
  const ManyFigures f = MeasureManySessions(Open(options), options.bench, options.many);
  if (options.json) {
    std::cout << nlohmann::ordered_json{{"sessions", f.sessions},
                                        {"failed", f.failed},
                                        {"seconds", f.seconds},
                                        {"resident_bytes", f.resident_bytes},
                                        {"stored_bytes", f.stored_bytes},
                                        {"resumed", f.resumed},
                                        {"wrong", f.wrong}}
                     .dump(2)
              << "\n";
  } else {
    std::cout << f.sessions << " sessions of " << BytesText(static_cast<int64_t>(f.stored_bytes)) << " in "
              << Fixed(f.seconds, 0) << " s; resident after each tenth:";
    for (const int64_t bytes : f.resident_bytes) std::cout << " " << BytesText(bytes);
    std::cout << "\n"
              << f.resumed << " of them resumed, " << f.wrong << " with another text than their prompt's\n";
  }
  return f.failed == 0 && f.wrong == 0 ? 0 : 1;
}

int Bench(const ServeBenchFlags& options) {
  if (options.many > 0) return BenchMany(options);
  if (options.stores) return BenchStores(options);
  if (options.port != 0) {
    const LoadFigures load = MeasurePort(Open(options), options.bench, options.port, options.bench.places);
    std::cout << ToJson(load).dump(2) << "\n";
    return load.failed == 0 ? 0 : 1;
  }
  const ServeFigures figures = MeasureServe(Open(options), options.bench);
  if (options.json) {
    std::cout << ToJson(figures).dump(2) << "\n";
  } else {
    Print(figures);
  }
  const int64_t failed = figures.streams.failed + figures.full.failed + figures.overloaded.failed;
  return failed == 0 && figures.sessions == options.bench.sessions ? 0 : 1;
}

void AddOptions(CLI::App& app, ServeBenchFlags& options) {
  cli::AddPlugins(app);
  ServeBenchOptions& bench = options.bench;
  const auto count = [&](const char* name, int64_t& value, const char* text, int64_t most) {
    app.add_option(name, value, text)->capture_default_str()->check(CLI::Range(int64_t{0}, most));
  };
  app.add_option("--config", options.config, "untrained model of this configuration")->capture_default_str();
  app.add_option("--model", options.model, "run directory or checkpoint, instead of --config");
  count("--streams", bench.streams, "streams at the same time", 1000);
  count("--tokens", bench.tokens, "tokens of an answer", 65536);
  count("--prompt", bench.prompt, "tokens of a prompt", 65536);
  count("--sessions", bench.sessions, "idle sessions", 1 << 20);
  count("--places", bench.places, "places of the server that is overloaded", 200);
  app.add_option("--seconds", bench.seconds, "of each measurement under load")->capture_default_str();
  app.add_option("--soak", bench.soak_seconds, "seconds of load with a look at the memory");
  app.add_option("--threads", bench.threads, "threads that compute; default: all cores")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--stores", options.stores, "measure stores of sessions instead: memory, directory, Redis");
  app.add_option("--redis", options.redis, "with --stores: address of a Redis, redis://host:port/db");
  count("--busy", options.busy, "with --stores: sessions that are never idle", 1000);
  count("--many", options.many, "make so many sessions in a directory instead, and look at the memory",
        1 << 20);
  app.add_option("--port", options.port,
                 "measure the server at this port of this machine instead, with --places clients")
      ->check(CLI::Range(0, 65535));
  app.add_flag("--json", options.json, "print JSON");
  app.footer("Example: ./lattice bench serve --streams 200 --soak 600");
}

}  // namespace
}  // namespace lattice::bench

int main(int argc, char** argv) {
  CLI::App app("Measures the server with many clients on this machine.");
  lattice::bench::ServeBenchFlags options;
  lattice::bench::AddOptions(app, options);
  return lattice::cli::RunProgram(
      app, [&] { return lattice::bench::Bench(options); }, argc, argv);
}
