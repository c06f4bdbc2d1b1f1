// Compares the runtime's logits with torch's for prefill, steps, a saved session and a batch.
#include "cli/verify_checks.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "base/error.h"
#include "runtime/engine.h"
#include "runtime/sampler.h"

namespace lattice::cli {
namespace {

using runtime::Engine;
using runtime::Feed;
using runtime::Session;
using runtime::Want;

constexpr size_t kBlock = 512;
using Tokens = std::span<const int32_t>;
using Logits = std::vector<float>;

// Appends the logits of every token.
void Read(Engine& engine, Session& session, Tokens tokens, Logits& out) {
  const Feed feed = {&session, tokens, Want::kAll};
  engine.Run({&feed, 1});
  out.insert(out.end(), engine.Logits(0).begin(), engine.Logits(0).end());
}

Logits Prefill(Engine& engine, Tokens tokens) {
  Session session = engine.NewSession();
  Logits logits;
  Read(engine, session, tokens, logits);
  return logits;
}

Logits Steps(Engine& engine, Tokens tokens) {
  Session session = engine.NewSession();
  Logits logits;
  for (const int32_t& token : tokens) Read(engine, session, {&token, 1}, logits);
  return logits;
}

// A unique file name; the file is removed by the destructor.
class TemporaryFile {
 public:
  TemporaryFile()
      : path_(std::filesystem::temp_directory_path() /
              StrCat("lattice-verify-", ::getpid(), ".safetensors")) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Logits Loaded(Engine& engine, const std::shared_ptr<const runtime::Model>& model, Tokens tokens) {
  const TemporaryFile file;
  Session session = engine.NewSession();
  Logits logits;
  Read(engine, session, tokens.first(tokens.size() / 2), logits);
  session.Save(file.path());
  Session loaded = Session::Load(model, file.path());
  Read(engine, loaded, tokens.subspan(tokens.size() / 2), logits);
  return logits;
}

// The logits of the second of four sessions; the others read other parts of the text in the same batches.
Logits Batched(Engine& engine, Tokens tokens) {
  std::vector<Session> sessions;
  for (int i = 0; i < 4; ++i) sessions.push_back(engine.NewSession());
  Logits logits;
  for (Tokens rest = tokens; !rest.empty();) {
    const size_t count = std::min<size_t>(rest.size(), 64);
    std::vector<Feed> feeds;
    for (size_t i = 0; i < sessions.size(); ++i)
      feeds.push_back(
          {&sessions[i], tokens.subspan(i, std::min(tokens.size() - i, 1 + 17 * i)), Want::kNone});
    feeds[1] = {&sessions[1], rest.first(count), Want::kAll};
    engine.Run(feeds);
    logits.insert(logits.end(), engine.Logits(1).begin(), engine.Logits(1).end());
    rest = rest.subspan(count);
  }
  return logits;
}

double Difference(const Logits& got, const Logits& want, double scale) {
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(double{got[i]} - want[i]);
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest / scale;
}

double MeanNats(Engine& engine, Tokens tokens) {
  Session session = engine.NewSession();
  const auto vocabulary = static_cast<size_t>(engine.model().config().vocab_size);
  const size_t targets = tokens.size() - 1;
  double sum = 0;
  for (size_t first = 0; first < targets; first += kBlock) {
    const size_t count = std::min(kBlock, targets - first);
    const Feed feed = {&session, tokens.subspan(first, count), Want::kAll};
    engine.Run({&feed, 1});
    for (size_t i = 0; i < count; ++i)
      sum -= runtime::LogProb(engine.Logits(0).subspan(i * vocabulary, vocabulary), tokens[first + i + 1]);
  }
  return sum / static_cast<double>(targets);
}

std::optional<int64_t> FirstGreedyDifference(Engine& engine, Tokens prompt, Tokens expected) {
  Session session = engine.NewSession();
  std::span<const float> logits = engine.Append(session, prompt);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto token = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    if (token != expected[i]) return static_cast<int64_t>(i);
    logits = engine.Append(session, {&token, 1});
  }
  return std::nullopt;
}

}  // namespace

double Differences::Largest() const { return std::max({prefill, steps, loaded, batched}); }

double LogitScale(const TorchReference& reference) {
  double scale = 0;
  for (const float logit : reference.logits) scale = std::max(scale, std::abs(double{logit}));
  Check(std::isfinite(scale) && scale > 0,
        "[verify] the torch model's logits are all zero or not numbers; "
        "train it, or take a checkpoint from before it diverged");
  return scale;
}

FormatFigures CheckFormat(const std::shared_ptr<const runtime::Model>& model, Tokens tokens,
                          const VerifyParts& parts, const TorchReference& reference, int threads) {
  Engine engine(model, threads);
  const double scale = LogitScale(reference);
  const Tokens compared = tokens.first(static_cast<size_t>(parts.compared));
  FormatFigures figures;
  const Logits prefill = Prefill(engine, compared);
  figures.to_torch.prefill = Difference(prefill, reference.logits, scale);
  const auto check = [&](const Logits& logits) {
    figures.same_bits = figures.same_bits && logits == prefill;
    return Difference(logits, reference.logits, scale);
  };
  figures.to_torch.steps = check(Steps(engine, compared));
  figures.to_torch.loaded = check(Loaded(engine, model, compared));
  figures.to_torch.batched = check(Batched(engine, compared));
  figures.nats = MeanNats(engine, tokens);
  figures.perplexity_cost = 100 * std::expm1(figures.nats - reference.nats);
  figures.first_greedy_difference =
      FirstGreedyDifference(engine, tokens.first(static_cast<size_t>(parts.prompt)), reference.greedy);
  return figures;
}

}  // namespace lattice::cli
