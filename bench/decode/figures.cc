// Measures decoding, batches and prefill, and the bandwidth and product rate that limit them.
#include "decode/figures.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/dense/activations.h"
#include "kernels/dense/read_bytes.h"
#include "runtime/engine.h"
#include "runtime/model_parts.h"
#include "runtime/prefix_cache.h"

namespace lattice::bench {
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

// The median time of each action, measured for about `seconds` and at least five calls each. The actions
// alternate, so that other load on the machine affects all of them: its memory can be twice as fast in one
// second as in the next.
// `apart`: each action has its own threads, which spin for a millisecond after their work and would disturb
// the next action. They are given time to fall asleep, and the call that wakes the next ones is not counted.
std::vector<double> MediansInTurn(double seconds, const std::vector<std::function<void()>>& actions,
                                  bool apart = false) {
  std::vector<std::vector<double>> times(actions.size());
  double total = 0;
  while (total < seconds * static_cast<double>(actions.size()) || times[0].size() < 5) {
    for (size_t i = 0; i < actions.size(); ++i) {
      if (apart) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        actions[i]();
      }
      const auto start = std::chrono::steady_clock::now();
      actions[i]();
      times[i].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      total += times[i].back();
    }
  }
  std::vector<double> medians(actions.size());
  std::transform(times.begin(), times.end(), medians.begin(), Median);
  return medians;
}

double MedianSeconds(double seconds, const std::function<void()>& action) {
  return MediansInTurn(seconds, {action})[0];
}

std::vector<int32_t> Prompt(const runtime::Model& model, int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>((i * 7919 + 13) % model.config().vocab_size));
  return tokens;
}

// Reads as many bytes as decoding a token does, with the threads of `pool`.
class Reader {
 public:
  Reader(int64_t bytes, ThreadPool& pool) : bytes_(bytes), pool_(pool), buffer_(static_cast<size_t>(bytes)) {
    std::fill_n(buffer_.data(), bytes, std::byte{1});
  }
  void Read() {
    constexpr int64_t kPiece = 1 << 20;
    pool_.For((bytes_ + kPiece - 1) / kPiece, 4, [&](int64_t first, int64_t last) {
      const int64_t begin = first * kPiece;
      sink_ += kernels::ReadBytes(buffer_.data() + begin, std::min(last * kPiece, bytes_) - begin);
    });
  }

 private:
  int64_t bytes_;
  ThreadPool& pool_;
  runtime::HugePageBuffer buffer_;
  std::atomic<uint64_t> sink_{0};
};

// A matrix product of the first block with the rows of a prompt.
class Product {
 public:
  Product(const runtime::Model& model, ThreadPool& pool)
      : w_(model.parts().blocks[0].ffn_gate),
        pool_(pool),
        x_(static_cast<size_t>(kPrompt * w_.cols), 0.5f),
        y_(static_cast<size_t>(kPrompt * w_.rows)) {
    activations_.Reset(w_.format, x_.data(), kPrompt, w_.cols);
    activations_.Convert(0, kPrompt);
  }
  double Operations() const { return 2.0 * static_cast<double>(kPrompt * w_.cols * w_.rows); }
  void Compute() {
    const kernels::MatMul product = activations_.Times(w_, y_.data());
    pool_.For(w_.rows, std::max<int64_t>(64, w_.rows / (4 * pool_.threads())),
              [&](int64_t first, int64_t last) { kernels::MatMulRows(product, first, last); });
  }

 private:
  const runtime::WeightMatrix& w_;
  ThreadPool& pool_;
  std::vector<float> x_, y_;
  kernels::Activations activations_;
};

// The floating-point operations of a token in matrix products, with `heads` products for the logits.
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

// Sessions that read one token each in every step. Every 64 steps they go back to where they began, so that a cache of
// keys and values stays as long as it was; the median does not see the steps that go back.
class Decoding {
 public:
  Decoding(Engine& engine, const Session& start, int64_t count = 1)
      : engine_(engine), start_(start.Checkpoint()) {
    for (int64_t i = 0; i < count; ++i) sessions_.push_back(start.Fork());
    for (Session& session : sessions_) feeds_.push_back({&session, {&kToken, 1}});
  }
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

  void Step() {
    constexpr int kSteps = 64;
    if (steps_++ % kSteps == kSteps - 1) {
      for (Session& session : sessions_) session.Rewind(start_);
    }
    engine_.Run(feeds_);
  }

 private:
  static constexpr int32_t kToken = 1;
  Engine& engine_;
  runtime::Snapshot start_;
  std::vector<Session> sessions_;
  std::vector<Feed> feeds_;
  int steps_ = 0;
};

void MeasurePrefill(Engine& engine, ThreadPool& pool, double seconds, DecodeFigures& figures) {
  const std::vector<int32_t> prompt = Prompt(engine.model(), kPrompt);
  Product product(engine.model(), pool);
  constexpr int kProducts = 10;
  const std::vector<double> times = MediansInTurn(seconds,
                                                  {[&] {
                                                     Session session = engine.NewSession();
                                                     engine.Append(session, prompt);
                                                   },
                                                   [&] {
                                                     for (int i = 0; i < kProducts; ++i) product.Compute();
                                                   }},
                                                  true);
  figures.first_token = times[0];
  figures.prefill = static_cast<double>(kPrompt) / times[0];
  figures.prefill_rate = ProductOperations(engine.model(), 1.0 / kPrompt) * figures.prefill;
  figures.product_rate = kProducts * product.Operations() / times[1];
  figures.product_tokens = figures.product_rate / ProductOperations(engine.model(), 1);

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
  Session session = engine.NewSession();
  figures.session_bytes = session.Bytes();
  const std::vector<int32_t> block = Prompt(engine.model(), kPrompt);
  std::optional<Decoding> decoding;
  for (const int64_t context : options.contexts) {
    while (session.position() < context) {
      const auto count = static_cast<size_t>(std::min(kPrompt, context - session.position()));
      const Feed feed = {&session, std::span(block).first(count), runtime::Want::kNone};
      engine.Run({&feed, 1});
    }
    decoding.emplace(engine, session);
    const auto step = [&] { decoding->Step(); };
    if (figures.decode.empty()) {
      Reader reader(figures.weight_bytes, pool);
      const std::vector<double> times = MediansInTurn(options.seconds, {step, [&] { reader.Read(); }}, true);
      figures.decode.push_back({context, 1 / times[0]});
      figures.read_bandwidth = static_cast<double>(figures.weight_bytes) / times[1];
    } else {
      figures.decode.push_back({context, 1 / MedianSeconds(options.seconds, step)});
    }
  }
  figures.last_session_bytes = session.Bytes();
  Decoding empty(engine, engine.NewSession());
  const std::vector<double> times =
      MediansInTurn(options.seconds, {[&] { decoding->Step(); }, [&] { empty.Step(); }});
  figures.last_context_time = times[0] / times[1];
}

void MeasureBatches(Engine& engine, const DecodeBenchOptions& options, DecodeFigures& figures) {
  std::vector<std::unique_ptr<Decoding>> batches;
  std::vector<std::function<void()>> actions;
  for (const int64_t count : options.batches) {
    batches.push_back(std::make_unique<Decoding>(engine, engine.NewSession(), count));
    actions.push_back([batch = batches.back().get()] { batch->Step(); });
  }
  if (actions.empty()) return;
  const std::vector<double> times = MediansInTurn(options.seconds / 2, actions);
  for (size_t i = 0; i < times.size(); ++i)
    figures.batch.push_back({options.batches[i], static_cast<double>(options.batches[i]) / times[i]});
}

}  // namespace

DecodeFigures MeasureDecode(std::shared_ptr<const runtime::Model> model, const DecodeBenchOptions& options) {
  DecodeFigures figures;
  figures.weight_bytes = model->BytesPerToken();
  ThreadPool pool(options.threads);
  Engine engine(model, options.threads);
  MeasureContexts(engine, pool, options, figures);
  MeasureBatches(engine, options, figures);
  MeasurePrefill(engine, pool, options.seconds, figures);
  return figures;
}

}  // namespace lattice::bench
