#include "cli/decode_figures.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include "base/thread_pool.h"
#include "kernels/activations.h"
#include "kernels/read_bytes.h"
#include "runtime/engine.h"
#include "runtime/model_parts.h"
#include "runtime/prefix_cache.h"

namespace lattice::cli {
namespace {

using runtime::Engine;
using runtime::Feed;
using runtime::Session;

constexpr int64_t kPrompt = 512;

double Median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Medians of the seconds that calls of the actions take, each in its turn, for about `seconds` for each and
// at least five calls.
template <typename... Action>
std::array<double, sizeof...(Action)> MediansInTurn(double seconds, const Action&... actions) {
  std::array<std::vector<double>, sizeof...(Action)> times;
  double total = 0;
  const auto measure = [&](std::vector<double>& into, const auto& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    into.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    total += into.back();
  };
  while (total < seconds * sizeof...(Action) || times[0].size() < 5) {
    size_t i = 0;
    (measure(times[i++], actions), ...);
  }
  std::array<double, sizeof...(Action)> medians;
  std::transform(times.begin(), times.end(), medians.begin(), Median);
  return medians;
}

template <typename Action>
double MedianSeconds(double seconds, const Action& action) {
  return MediansInTurn(seconds, action)[0];
}

std::vector<int32_t> Prompt(const runtime::Model& model, int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>((i * 7919 + 13) % model.config().vocab_size));
  return tokens;
}

double ReadBandwidth(int64_t bytes, ThreadPool& pool, double seconds) {
  const runtime::Block buffer(static_cast<size_t>(bytes));
  std::fill_n(buffer.data(), bytes, std::byte{1});
  std::atomic<uint64_t> sink{0};
  constexpr int64_t kPiece = 1 << 20;
  const double time = MedianSeconds(seconds, [&] {
    pool.For((bytes + kPiece - 1) / kPiece, 4, [&](int64_t first, int64_t last) {
      const int64_t begin = first * kPiece;
      sink += kernels::ReadBytes(buffer.data() + begin, std::min(last * kPiece, bytes) - begin);
    });
  });
  return static_cast<double>(bytes) / time;
}

// Operations a second of the products of one block, with 512 rows of activations.
double ProductRate(const runtime::Model& model, ThreadPool& pool, double seconds) {
  const runtime::BlockParts& block = model.parts().blocks[0];
  const runtime::WeightMatrix& w = block.ffn_gate;
  std::vector<float> x(static_cast<size_t>(kPrompt * w.cols), 0.5f), y(static_cast<size_t>(kPrompt * w.rows));
  kernels::Activations activations;
  activations.Reset(w.format, x.data(), kPrompt, w.cols);
  activations.Convert(0, kPrompt);
  const kernels::MatMul product = activations.Times(w, y.data());
  const double time = MedianSeconds(seconds, [&] {
    pool.For(w.rows, std::max<int64_t>(64, w.rows / (4 * pool.threads())),
             [&](int64_t first, int64_t last) { kernels::MatMulRows(product, first, last); });
  });
  return 2.0 * static_cast<double>(kPrompt * w.cols * w.rows) / time;
}

// Floating-point operations of a token in the products, with `heads` products for the logits.
double ProductOperations(const runtime::Model& model, double heads) {
  const auto elements = [](const runtime::WeightMatrix& w) { return static_cast<double>(w.rows * w.cols); };
  double sum = heads * elements(model.parts().head);
  for (const runtime::BlockParts& b : model.parts().blocks) {
    for (const runtime::WeightMatrix* w :
         {&b.qk, &b.q, &b.k, &b.v, &b.gate, &b.out, &b.ffn_gate, &b.ffn_up, &b.ffn_down})
      sum += elements(*w);
  }
  return 2 * sum;
}

void MeasurePrefill(Engine& engine, double seconds, DecodeFigures& figures) {
  const std::vector<int32_t> prompt = Prompt(engine.model(), kPrompt);
  const double time = MedianSeconds(seconds, [&] {
    Session session = engine.NewSession();
    engine.Append(session, prompt);
  });
  figures.first_token = time;
  figures.prefill = static_cast<double>(kPrompt) / time;
  figures.prefill_rate = ProductOperations(engine.model(), 1.0 / kPrompt) * figures.prefill;

  runtime::PrefixCache cache(int64_t{1} << 40);
  Session session = engine.NewSession();
  const auto shared = std::span(prompt).first(kPrompt - 1);
  engine.Append(session, shared);
  cache.Put(shared, session.Checkpoint());
  figures.first_token_cached = MedianSeconds(0.1, [&] {
    const runtime::PrefixCache::Hit hit = cache.Find(prompt);
    session.Rewind(hit.state);
    engine.Append(session, std::span(prompt).subspan(static_cast<size_t>(hit.tokens)));
  });
}

void MeasureContexts(Engine& engine, ThreadPool& pool, const DecodeBenchOptions& options,
                     DecodeFigures& figures) {
  Session session = engine.NewSession(), empty = engine.NewSession();
  figures.session_bytes = session.Bytes();
  const std::vector<int32_t> block = Prompt(engine.model(), kPrompt);
  const int32_t token = 1;
  const auto step = [&] { engine.Append(session, {&token, 1}); };
  const double before = ReadBandwidth(figures.weight_bytes, pool, options.seconds);
  for (const int64_t context : options.contexts) {
    while (session.position() < context) {
      const auto count = static_cast<size_t>(std::min(kPrompt, context - session.position()));
      const Feed feed = {&session, std::span(block).first(count), runtime::Want::kNone};
      engine.Run({&feed, 1});
    }
    figures.decode.push_back({context, 1 / MedianSeconds(options.seconds, step)});
    if (figures.decode.size() > 1) continue;
    figures.read_bandwidth = (before + ReadBandwidth(figures.weight_bytes, pool, options.seconds)) / 2;
  }
  figures.last_session_bytes = session.Bytes();
  const auto [last, first] = MediansInTurn(options.seconds, step, [&] { engine.Append(empty, {&token, 1}); });
  figures.last_context_time = last / first;
}

void MeasureBatches(Engine& engine, const DecodeBenchOptions& options, DecodeFigures& figures) {
  const int32_t token = 1;
  for (const int64_t count : options.batches) {
    std::vector<Session> sessions;
    std::vector<Feed> feeds;
    for (int64_t i = 0; i < count; ++i) sessions.push_back(engine.NewSession());
    for (Session& each : sessions) feeds.push_back({&each, {&token, 1}});
    const double time = MedianSeconds(options.seconds / 2, [&] { engine.Run(feeds); });
    figures.batch.push_back({count, static_cast<double>(count) / time});
  }
}

}  // namespace

DecodeFigures MeasureDecode(std::shared_ptr<const runtime::Model> model, const DecodeBenchOptions& options) {
  DecodeFigures figures;
  figures.weight_bytes = model->BytesPerToken();
  ThreadPool pool(options.threads);
  Engine engine(model, options.threads);
  MeasureContexts(engine, pool, options, figures);
  MeasureBatches(engine, options, figures);
  figures.product_rate = ProductRate(*model, pool, options.seconds / 2);
  figures.product_tokens = figures.product_rate / ProductOperations(*model, 1);
  MeasurePrefill(engine, options.seconds, figures);
  return figures;
}

}  // namespace lattice::cli
