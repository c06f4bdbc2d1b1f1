// Perplexity over windows of a text, or with one carried state, and the loss by position.
#include "eval/perplexity.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "eval/batch_size.h"
#include "eval/row_scores.h"
#include "model/cost.h"

namespace lattice::eval {
namespace {

constexpr int64_t kMaxWindows = 8;
// Tokens whose logits are held in memory at once.
constexpr int64_t kRows = 512;

// Sums of losses by position in the window.
class Curve {
 public:
  explicit Curve(int64_t length) {
    const std::vector<int64_t> borders = CurveBorders(length);
    for (size_t i = 0; i + 1 < borders.size(); ++i) points_.push_back({borders[i], borders[i + 1], 0, 0});
  }

  void Add(int64_t position, double nats) {
    const auto after = std::upper_bound(points_.begin(), points_.end(), position,
                                        [](int64_t at, const CurvePoint& point) { return at < point.from; });
    CurvePoint& point = *std::prev(after);
    point.nats += nats;
    ++point.tokens;
  }

  std::vector<CurvePoint> Means() const {
    std::vector<CurvePoint> means = points_;
    for (CurvePoint& point : means) point.nats /= static_cast<double>(std::max<int64_t>(1, point.tokens));
    return means;
  }

 private:
  std::vector<CurvePoint> points_;
};

}  // namespace

double PerplexityResult::Loss() const { return tokens > 0 ? nats / static_cast<double>(tokens) : 0; }
double PerplexityResult::Perplexity() const { return std::exp(Loss()); }
double PerplexityResult::BitsPerByte() const {
  return bytes > 0 ? nats / std::numbers::ln2 / static_cast<double>(bytes) : 0;
}

std::vector<int64_t> CurveBorders(int64_t length) {
  std::vector<int64_t> borders;
  for (int64_t step = 1, at = 0; at < length; at += step) {
    if (at >= 8 * step) step *= 2;
    borders.push_back(at);
  }
  borders.push_back(length);
  return borders;
}

PerplexityMeter::PerplexityMeter(std::shared_ptr<const runtime::Model> model, int threads)
    : model_(std::move(model)), engine_(model_, threads), threads_(threads) {}

int64_t PerplexityMeter::Batch(const PerplexityOptions& options) const {
  if (options.carry) return 1;
  if (options.batch > 0) return options.batch;
  const model::ModelConfig& config = model_->config();
  const int64_t cache = model::StateBytes(config, options.context) - model::StateBytes(config, 0);
  return BatchOfStates(runtime::Session(model_).Bytes() + cache, kMaxWindows);
}

PerplexityResult PerplexityMeter::Run(std::span<const int32_t> tokens, const data::TokenBytes& token_bytes,
                                      const PerplexityOptions& options) {
  const auto available = static_cast<int64_t>(tokens.size()) - 1;
  const int64_t length = options.carry ? available : options.context;
  Check(length > 0 && available >= length, "[eval] the text has ", tokens.size(), " tokens; a context of ",
        options.context, " needs at least ", options.context + 1);
  const auto began = std::chrono::steady_clock::now();
  const int64_t windows = available / length, batch = std::min(Batch(options), windows);
  const int64_t piece = std::max<int64_t>(1, kRows / batch), classes = model_->config().vocab_size;
  PerplexityResult result;
  result.context = length;
  Curve curve(length);
  std::vector<RowScore> scores(static_cast<size_t>(piece));
  for (int64_t first = 0; first < windows; first += batch) {
    const int64_t count = std::min(batch, windows - first);
    std::vector<runtime::Session> sessions;
    for (int64_t i = 0; i < count; ++i) sessions.emplace_back(model_);
    for (int64_t at = 0; at < length; at += piece) {
      const auto size = static_cast<size_t>(std::min(piece, length - at));
      std::vector<runtime::Feed> feeds;
      for (int64_t i = 0; i < count; ++i) {
        const auto begin = static_cast<size_t>((first + i) * length + at);
        feeds.push_back(
            {&sessions[static_cast<size_t>(i)], tokens.subspan(begin, size), runtime::Want::kAll});
      }
      engine_.Run(feeds);
      for (int64_t i = 0; i < count; ++i) {
        const auto begin = static_cast<size_t>((first + i) * length + at);
        const std::span<const int32_t> targets = tokens.subspan(begin + 1, size);
        ScoreRows(engine_.Logits(static_cast<size_t>(i)), targets, classes, threads_, scores);
        for (size_t t = 0; t < size; ++t) {
          result.nats -= scores[t].log_prob;
          result.bytes += token_bytes.After(tokens[begin + t], targets[t]);
          curve.Add(at + static_cast<int64_t>(t), -double{scores[t].log_prob});
        }
      }
      result.tokens += count * static_cast<int64_t>(size);
      if (options.progress) options.progress(result.tokens, windows * length);
    }
  }
  result.curve = curve.Means();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

}  // namespace lattice::eval
