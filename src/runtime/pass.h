// One pass of some tokens through the model: what the blocks are computed with. Inside the runtime only.
#ifndef LATTICE_RUNTIME_PASS_H_
#define LATTICE_RUNTIME_PASS_H_

#include <initializer_list>
#include <span>
#include <vector>

#include "base/stretches.h"
#include "base/thread_pool.h"
#include "kernels/dense/activations.h"
#include "runtime/engine.h"
#include "runtime/model_parts.h"

namespace lattice::runtime {

// Consecutive rows of the pass that belong to one session.
struct SessionRows {
  SequenceState* state = nullptr;
  int64_t first = 0, count = 0;
  StepObserver* observer = nullptr;  // or null
  int64_t token = 0;                 // of its first row, in its feed
};

// A float array that only grows.
class Scratch {
 public:
  float* Get(int64_t count) {
    if (static_cast<size_t>(count) > values_.size()) values_.resize(static_cast<size_t>(count));
    return values_.data();
  }

 private:
  std::vector<float> values_;
};

// Arrays of the rows of a pass; kept from pass to pass.
struct Workspace {
  Scratch x, u, t, qk, q, k, v, scaled_v, gate, y, gate_low, hidden_gate, hidden_up, cos, sin, before;
  Scratch gates[kernels::kMaxGates];
  kernels::Activations activations;
  Stretches stretches;  // of the rows of a product, and of the cells of a recurrence

  explicit Workspace(int threads) : stretches(threads) {}
};

// A share of the states of a layer, [from, to) of each, that is fetched from memory while products are
// computed: many sessions have more state than caches hold, and the recurrence alone would wait for it.
struct StateShare {
  int64_t layer = -1;
  double from = 0, to = 0;
};

// How far the states of the next layer are fetched with the first product of the feed-forward part and with
// both; the rest comes with the products that make q, k and v.
constexpr double kWithFirst = 0.55, kWithFeedForward = 0.85;

struct Projection {
  const WeightMatrix* w;
  float* y;  // [rows, w->rows]
};

class Pass {
 public:
  Pass(const ModelParts& model, ThreadPool& threads, Workspace& workspace,
       std::span<const SessionRows> segments);

  // Embedding, then all blocks. tokens [rows].
  void Run(std::span<const int32_t> tokens);
  // Behind Run: the logits of the listed rows, one after the other.
  void Logits(std::span<const int64_t> rows, float* out);

 private:
  void MemoryBlock(const BlockParts& b, int64_t layer);
  void AttentionBlock(const BlockParts& b, int64_t layer);
  void FeedForward(const BlockParts& b, int64_t layer);

  // The parts of a memory block, in their order.
  void PreConvolve(const BlockParts& b, int64_t layer);
  void MakeQueriesAndKeys(const BlockParts& b, int64_t layer);
  void MakeValues(const BlockParts& b, int64_t layer);
  void MakeGates(const BlockParts& b);
  // gate [rows, heads] = sigmoid(gate + bias)
  void SigmoidGate(const float* bias, float* gate);
  // exp(decay softplus(gate + bias)); the values of a memory whose step scales them are scaled here.
  void DecayGate(const GateParts& parts, float* gate);
  // gate [rows, heads, slots] = sigmoid(low W^T + bias)^kSlotGatePower
  void SlotGate(const GateParts& parts, Scratch& gate);
  void Remember(const BlockParts& b, int64_t layer);
  void ReadOut(const BlockParts& b);

  // work(first, last) over rows; a few rows are not worth waking a thread for.
  template <typename Work>
  void OverRows(int64_t rows, const Work& work) {
    threads_.For(rows, rows < 8 ? rows : 8, work);
  }
  // work(segment, tile) for the tiles of the convolution kernel; behind the last of a segment, done(segment).
  template <typename Work, typename Done>
  void OverTiles(const Work& work, const Done& done);

  // Rows [first, last) of y = RMSNorm(x) weight; a `delta` is added to x before.
  void Norm(float* x, const float* delta, const float* weight, int64_t first, int64_t last, float* y) const;
  // The same of the stream, which takes up what AddToStream left for it. All rows must have had their turn
  // before TookUp().
  void NormStream(const float* weight, int64_t first, int64_t last, float* y) const;
  void TookUp() { pending_ = nullptr; }
  // t joins the stream when that is read next, so that one pass over memory does both.
  void AddToStream(const float* t) { pending_ = t; }

  // y = x W^T for several W, all of one format or float32, that share x [rows, cols]. make(first, last)
  // writes rows of x, which are then rounded for the product while they are in the cache.
  template <typename Make>
  void Project(const Make& make, const float* x, int64_t rows, std::span<const Projection> all,
               const StateShare& beside = {}) {
    StartProducts(x, rows, all);
    OverRows(rows, [&](int64_t first, int64_t last) {
      make(first, last);
      w_.activations.Convert(first, last);
    });
    Multiply(all, beside);
  }
  template <typename Make>
  void Project(const Make& make, const float* x, int64_t rows, std::initializer_list<Projection> all,
               const StateShare& beside = {}) {
    Project(make, x, rows, std::span(all.begin(), all.size()), beside);
  }
  // x is there already.
  void Project(const float* x, int64_t rows, std::initializer_list<Projection> all) {
    Project([](int64_t, int64_t) {}, x, rows, all);
  }
  void StartProducts(const float* x, int64_t rows, std::span<const Projection> all);
  void Multiply(std::span<const Projection> all, const StateShare& beside);
  // Part i of `parts` of a share, or as much of it as lies in one session.
  kernels::FetchAhead::Beside PartOf(const StateShare& share, int64_t i, int64_t parts) const;
  void MakeRotations();
  // Rotary positions on [heads, width] of a row.
  void Rotate(float* x, int64_t row, int64_t width) const;
  void Convolve(const ConvParts& conv, const float* x, const float* past, int64_t count, int64_t tile,
                float* y) const;
  // Keeps the last inputs of a convolution, x [rows, channels], for the next pass.
  void KeepTail(const SessionRows& segment, const float* x, int64_t channels, float* past) const;
  float* LayerState(const SessionRows& segment, int64_t layer) const {
    return segment.state->fixed.data() + layer * model_.layout.layer_size;
  }

  const ModelParts& model_;
  const model::ModelConfig& config_;
  ThreadPool& threads_;
  Workspace& w_;
  std::span<const SessionRows> segments_;
  int64_t rows_ = 0;
  const float* pending_ = nullptr;  // [rows, width], to be added to the stream
  int64_t rotated_ = 0;             // pairs that turn with the position; 0: no rotary positions
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_PASS_H_
