// One forward pass of a batch of tokens, from one or several sessions, through the model. Each token is a
// row. Internal to the runtime.
#ifndef LATTICE_RUNTIME_PASS_H_
#define LATTICE_RUNTIME_PASS_H_

#include <initializer_list>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "base/work_stealing_loop.h"
#include "kernels/dense/activations.h"
#include "runtime/engine.h"
#include "runtime/model_parts.h"

namespace lattice::runtime {

// Consecutive rows of the pass that belong to one session.
struct SessionRows {
  SequenceState* state = nullptr;
  int64_t first = 0, count = 0;
  StepObserver* observer = nullptr;  // or null
  int64_t token = 0;                 // index of the first row in its feed
  std::vector<double>* hidden_sum = nullptr;
};

// A scratch buffer that grows when more is asked for and never shrinks.
class Scratch {
 public:
  float* Get(int64_t count) {
    if (static_cast<size_t>(count) > values_.size()) values_.resize(static_cast<size_t>(count));
    return values_.data();
  }

 private:
  std::vector<float> values_;
};

// The scratch buffers of a pass, reused from pass to pass. x is the residual stream, u its normalised form,
// and t an output that is to be added to it.
struct Workspace {
  Scratch x, u, t, qk, q, k, v, scaled_v, gate, y, gate_low, hidden_gate, hidden_up, before;
  Scratch cos, sin, memory_cos, memory_sin;  // rotary positions of attention and of memories
  Scratch old_k, old_v, near, share;         // a window: what leaves it, what it gives, the memory's share
  Scratch old_gates[kernels::kMaxGates];
  Scratch gates[kernels::kMaxGates];
  kernels::Activations activations;
  ProductObserver* observer = nullptr;
  WorkStealingLoop work_loop;  // shares out the rows of a product, and the cells of a recurrence

  explicit Workspace(int threads) : work_loop(threads) {}
};

// A part of each session's state of a layer, given as the fraction [from, to), that is prefetched while
// matrix products are computed. The states of many sessions exceed the caches, and the recurrence, which
// computes little per byte, would wait for them.
struct StateShare {
  int64_t layer = -1;
  double from = 0, to = 0;
};

// The fraction of the next layer's states that is prefetched by the end of the first product of the
// feed-forward layer, and by the end of its second; the products that make q, k and v prefetch the rest.
constexpr double kWithFirst = 0.55, kWithFeedForward = 0.85;

// The most products that share an input: q, k, v, an output gate, a share, and the gates of a memory.
constexpr int64_t kMostProducts = 5 + kernels::kMaxGates;

// A product y = x W^T.
struct Projection {
  const WeightMatrix* w;
  float* y;  // [rows, w->rows]
};

class Pass {
 public:
  Pass(const ModelParts& model, ThreadPool& threads, Workspace& workspace,
       std::span<const SessionRows> segments);

  // Embeds tokens [rows], runs all blocks and advances the sessions.
  void Run(std::span<const int32_t> tokens);
  // After Run: writes the logits of the listed rows, one after the other.
  void Logits(std::span<const int64_t> rows, float* out);
  // After Run: adds the last hidden states of the segments that have a sum to it.
  void SumHidden();

 private:
  void MemoryBlock(const BlockParts& b, int64_t layer);
  void AttentionBlock(const BlockParts& b, int64_t layer);
  void JoinedBlock(const BlockParts& b, int64_t layer);
  void FeedForward(const BlockParts& b, int64_t layer);

  // The parts of a memory block, in the order they run.
  void PreConvolve(const BlockParts& b, int64_t layer);
  void MakeQueriesAndKeys(const BlockParts& b, int64_t layer);
  void MakeValues(const BlockParts& b, int64_t layer);
  void MakeGates(const BlockParts& b);
  // gate [rows, heads] = sigmoid(gate + bias)
  void SigmoidGate(const float* bias, float* gate);
  // gate [rows, heads] = exp(decay softplus(gate + bias)). If the memory's values are scaled by the step size
  // (the softplus), as `scales` says, that is done here too.
  void DecayGate(const GateParts& parts, bool scales, float* gate);
  // gate [rows, heads, slots] = sigmoid(low W^T + bias)^kSlotGatePower
  void SlotGate(const GateParts& parts, Scratch& gate);
  // The weights that make the gates of a block from u, with where their products go.
  void AddGateProducts(const BlockParts& b, std::vector<Projection>& products);
  // What a memory is given, beside the queries in w_.q: k [rows, H, M], v [rows, H, D] and the gates.
  struct MemoryTokens {
    const float *k, *v;
    Scratch* gates;
  };
  // Reads into w_.y.
  void RunMemory(const BlockParts& b, int64_t layer, const MemoryTokens& tokens);
  void ProjectOutput(const BlockParts& b);

  // The parts of a joined block, in the order they run.
  void AttendWindow(const BlockParts& b, int64_t layer);
  void TakeLeaving(const BlockParts& b, int64_t layer);
  void KeepWindow(const BlockParts& b, int64_t layer);
  void JoinOutput(const BlockParts& b);
  // Rotates q and k of all rows.
  void RotateQueriesAndKeys(float* q, float* k);

  // Calls work(first, last) for ranges of rows, in parallel where there are enough rows to wake a thread for.
  template <typename Work>
  void OverRows(int64_t rows, const Work& work) {
    threads_.For(rows, rows < 8 ? rows : 8, work);
  }
  // Calls work(segment, tile) for all tiles of the convolution kernel, and done(segment) after a segment's
  // last tile.
  template <typename Work, typename Done>
  void OverTiles(const Work& work, const Done& done);

  // Rows [first, last) of y = RMSNorm(x) weight. If there is a `delta`, x += delta first.
  void Norm(float* x, const float* delta, const float* weight, int64_t first, int64_t last, float* y) const;
  // The additions to the residual stream are fused with the norm that reads it next, so that one pass over
  // memory does both: AddToStream only notes t, NormStream adds it to the rows that it normalises, and once
  // all rows are done ClearPending must be called.
  void AddToStream(const float* t) { pending_ = t; }
  void NormStream(const float* weight, int64_t first, int64_t last, float* y) const;
  void ClearPending() { pending_ = nullptr; }

  // y = x W^T for several W that share x [rows, cols]. Apart from float32 ones, all W have the same format.
  // make(first, last) writes rows of x, which are converted to the format of the product while they are in
  // the cache. `beside` is prefetched meanwhile.
  template <typename Make>
  void Project(const Make& make, const float* x, int64_t rows, std::span<const Projection> all,
               const StateShare& beside = {}) {
    StartProducts(x, rows, all);
    OverRows(rows, [&](int64_t first, int64_t last) {
      make(first, last);
      w_.activations.Convert(first, last);
    });
    if (w_.observer != nullptr) ShowInputs(x, rows, all);
    Multiply(all, beside);
  }
  template <typename Make>
  void Project(const Make& make, const float* x, int64_t rows, std::initializer_list<Projection> all,
               const StateShare& beside = {}) {
    Project(make, x, rows, std::span(all.begin(), all.size()), beside);
  }
  // The same where x is already written.
  void Project(const float* x, int64_t rows, std::initializer_list<Projection> all) {
    Project([](int64_t, int64_t) {}, x, rows, all);
  }
  void StartProducts(const float* x, int64_t rows, std::span<const Projection> all);
  void ShowInputs(const float* x, int64_t rows, std::span<const Projection> all);
  void Multiply(std::span<const Projection> all, const StateShare& beside);
  // What piece i of `parts` pieces of a product prefetches: its part of the share, cut off where the state of
  // its first session ends.
  kernels::FetchAhead::Region PartOf(const StateShare& share, int64_t i, int64_t parts) const;
  // The cosines and sines of rotary positions, of all rows: [rows, pairs].
  struct Rotations {
    int64_t pairs = 0;  // 0: none
    float *cos = nullptr, *sin = nullptr;
  };
  // `period` is that of model.rope_period; 0: positions do not repeat.
  Rotations MakeRotations(int64_t pairs, int64_t period, Scratch& cos, Scratch& sin) const;
  // Applies the rotary position embedding to x [heads, width] of one row.
  void Rotate(const Rotations& by, float* x, int64_t row, int64_t heads, int64_t width) const;
  void Convolve(const ConvParts& conv, const float* x, const float* past, int64_t count, int64_t tile,
                float* y) const;
  // Saves the last inputs of a convolution, x [rows, channels], in the session's state for the next pass.
  void KeepTail(const SessionRows& segment, const float* x, int64_t channels, float* past) const;
  const LayerLayout& LayoutOf(int64_t layer) const {
    return model_.layout.layers[static_cast<size_t>(layer)];
  }
  float* LayerState(const SessionRows& segment, int64_t layer) const {
    return segment.state->fixed.data() + LayoutOf(layer).offset;
  }

  const ModelParts& model_;
  const model::ModelConfig& config_;
  ThreadPool& threads_;
  Workspace& w_;
  std::span<const SessionRows> segments_;
  int64_t rows_ = 0;
  const float* pending_ = nullptr;  // [rows, width], not yet added to the residual stream
  Rotations of_attention_, of_memory_;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_PASS_H_
