// `./lattice bench states` runs this: what it would cost to keep memories in bfloat16 between tokens.
//
// Three sessions read the same text token by token. Behind every token the memories of one are rounded to the nearest
// bfloat16, those of another up or down at random so that the mean is right (stochastic rounding); the third stays
// float32. The runtime computes in float32 in all of them: this is the error of the storage alone.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "base/random.h"
#include "cli/open_model.h"
#include "cli/program.h"
#include "io/file.h"
#include "runtime/engine.h"
#include "runtime/weights.h"
#include "text/tokenizer.h"

namespace lattice::bench {
namespace {

using runtime::Engine;
using runtime::Feed;
using runtime::Session;

struct StatesFlags {
  std::string model, data;
  int64_t tokens = 16384;
  int64_t context = 0;
  int threads = 0;
  bool json = false;
};

enum Storage { kFloat32, kNearest, kStochastic, kStorages };
constexpr const char* kNames[kStorages] = {"float32", "bf16, nearest", "bf16, stochastic"};

constexpr uint32_t kLowHalf = 0xFFFF;

// Of finite values.
float Nearest(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & ~kLowHalf);
}
float Stochastic(float x, uint32_t random16) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + random16) & ~kLowHalf);
}

// The memories of a session, layer by layer.
std::vector<std::span<float>> Memories(Session& session) {
  const model::ModelConfig& config = session.model().config();
  const runtime::StateLayout layout(config);
  std::vector<std::span<float>> out;
  for (int64_t i = 0; i < config.layers; ++i) {
    const runtime::LayerLayout& layer = layout.layers[static_cast<size_t>(i)];
    if (layer.head_size == 0) continue;
    out.emplace_back(session.state().fixed.data() + layer.memory,
                     static_cast<size_t>(config.heads * layer.head_size));
  }
  return out;
}

// Rounds the memories of a session as if they had been stored and read again.
void Store(Storage storage, Session& session) {
  if (storage == kFloat32) return;
  const Random random(1, static_cast<uint64_t>(session.position()));
  uint64_t index = 0;
  for (const std::span<float> memory : Memories(session)) {
    if (storage == kNearest) {
      for (float& x : memory) x = Nearest(x);
      continue;
    }
    for (size_t i = 0; i < memory.size(); i += 8) {  // a block has 128 random bits
      const std::array<uint32_t, 4> block = random.Block(index++);
      for (size_t j = 0; j < std::min<size_t>(8, memory.size() - i); ++j)
        memory[i + j] = Stochastic(memory[i + j], block[j / 2] >> (16 * (j % 2)) & kLowHalf);
    }
  }
}

// |a - b| / |b| over all memories.
double Distance(Session& a, Session& b) {
  double difference = 0, size = 0;
  const auto theirs = Memories(b);
  const auto ours = Memories(a);
  for (size_t layer = 0; layer < ours.size(); ++layer) {
    for (size_t i = 0; i < ours[layer].size(); ++i) {
      const double x = ours[layer][i], y = theirs[layer][i];
      difference += (x - y) * (x - y);
      size += y * y;
    }
  }
  return std::sqrt(difference / std::max(size, 1e-300));
}

double Nats(std::span<const float> logits, int32_t token) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x - most));
  return std::log(sum) + most - logits[static_cast<size_t>(token)];
}

struct StatesFigures {
  std::array<double, kStorages> perplexity{};
  // Behind 1, 2, 4, ... tokens: how far the memories are from those of float32.
  struct Drift {
    int64_t tokens = 0;
    std::array<double, kStorages> distance{};
  };
  std::vector<Drift> drift;

  double Change(int storage) const {
    return perplexity[static_cast<size_t>(storage)] / perplexity[kFloat32] - 1;
  }
};

StatesFigures Measure(const std::shared_ptr<const runtime::Model>& model, std::span<const int32_t> tokens,
                      const StatesFlags& options) {
  Engine engine(model, options.threads);
  std::vector<Session> sessions;
  for (int i = 0; i < kStorages; ++i) sessions.push_back(engine.NewSession());
  StatesFigures out;
  std::array<double, kStorages> nats{};
  int64_t counted = 0;
  for (size_t t = 0; t + 1 < tokens.size(); ++t) {
    const bool fresh = options.context > 0 && static_cast<int64_t>(t) % options.context == 0;
    std::vector<Feed> feeds;
    for (Session& session : sessions) {
      if (fresh) session.Reset();
      feeds.push_back({&session, tokens.subspan(t, 1)});
    }
    engine.Run(feeds);
    for (size_t i = 0; i < kStorages; ++i) {
      nats[i] += Nats(engine.Logits(i), tokens[t + 1]);
      Store(static_cast<Storage>(i), sessions[i]);
    }
    ++counted;
    if (!std::has_single_bit(t + 1)) continue;
    StatesFigures::Drift drift{counted, {}};
    for (size_t i = 1; i < kStorages; ++i) drift.distance[i] = Distance(sessions[i], sessions[kFloat32]);
    out.drift.push_back(drift);
    if (!options.json)
      std::cerr << Grouped(counted) << " tokens: memories off by " << drift.distance[kNearest] << " and "
                << drift.distance[kStochastic] << "\n";
  }
  for (size_t i = 0; i < kStorages; ++i) out.perplexity[i] = std::exp(nats[i] / static_cast<double>(counted));
  return out;
}

int Bench(const StatesFlags& options) {
  cli::OpenOptions open;
  open.format = runtime::WeightFormat::kF32;
  const cli::OpenedModel opened = cli::OpenModel(options.model, open);
  std::vector<int32_t> tokens;
  const io::MappedFile text(options.data);
  // Enough text for the tokens wanted, read again from the beginning where there is less.
  const std::string_view some = text.text().substr(0, static_cast<size_t>(options.tokens) * 16);
  const std::vector<int32_t> once = opened.tokenizer->Encode(some);
  Check(!once.empty(), "[bench states] ", options.data, " has no tokens");
  while (static_cast<int64_t>(tokens.size()) < options.tokens + 1)
    tokens.insert(tokens.end(), once.begin(), once.end());
  tokens.resize(static_cast<size_t>(options.tokens) + 1);
  const StatesFigures figures = Measure(opened.model, tokens, options);
  nlohmann::ordered_json json = {{"tokens", options.tokens}, {"context", options.context}};
  for (int i = 0; i < kStorages; ++i) {
    const double perplexity = figures.perplexity[static_cast<size_t>(i)];
    json["perplexity"][kNames[i]] = perplexity;
    if (!options.json)
      std::cout << kNames[i] << ": perplexity " << Fixed(perplexity, 5) << ", "
                << Fixed(100 * figures.Change(i), 4) << " % above float32\n";
  }
  for (const StatesFigures::Drift& drift : figures.drift)
    json["distance"][std::to_string(drift.tokens)] = {drift.distance[kNearest], drift.distance[kStochastic]};
  if (options.json) std::cout << json.dump(2) << "\n";
  return 0;
}

void AddOptions(CLI::App& app, StatesFlags& options) {
  app.add_option("--model", options.model, "run directory or checkpoint")->required();
  app.add_option("--data", options.data, "text")->required()->check(CLI::ExistingFile);
  app.add_option("--tokens", options.tokens, "tokens to read; a shorter text is read again")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app.add_option("--context", options.context, "begin anew after so many tokens; 0: never")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  app.add_option("--threads", options.threads, "threads; default: all cores")->check(CLI::Range(1, 1024));
  app.add_flag("--json", options.json, "print JSON");
  app.footer("Example: lattice_bench_states --model runs/book --data book.txt --tokens 1048576");
}

}  // namespace
}  // namespace lattice::bench

int main(int argc, char** argv) {
  CLI::App app("Measures what memories in bfloat16 would cost in perplexity.");
  lattice::bench::StatesFlags options;
  lattice::bench::AddOptions(app, options);
  return lattice::cli::RunProgram(
      app, [&] { return lattice::bench::Bench(options); }, argc, argv);
}
