// Computes: feeds tokens to sessions and gives logits.
#ifndef LATTICE_RUNTIME_ENGINE_H_
#define LATTICE_RUNTIME_ENGINE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/model.h"
#include "runtime/session.h"

namespace lattice::runtime {

// Which of the fed tokens get logits.
enum class Want { kLast, kAll, kNone };

// What a token did to the memory of one head.
struct HeadTrace {
  float write = 0;    // |S_t - S_{t-1}| / |S_t|: how much of the memory the token changed
  float novelty = 0;  // 1 - cos(k S_{t-1}, v): 0 when the memory already answers k with v, 1 when it knows
                      // nothing of it
  float gamma = 0;    // gates as the rule got them; 1 where it has none (mlstm: the pre-activations). A gate
  float mu = 0;       // per slot is averaged.
};

// Filled by Run for a feed that asks for it: [tokens, layers, heads]. Tracing computes token by token.
struct Trace {
  int64_t layers = 0, heads = 0;
  std::vector<HeadTrace> values;

  const HeadTrace& At(int64_t token, int64_t layer, int64_t head) const {
    return values[static_cast<size_t>((token * layers + layer) * heads + head)];
  }
};

// One token at the memory of one head, as the rule got it. Valid during the call.
struct MemoryStep {
  int64_t token = 0, layer = 0, head = 0;  // the token counts from the feed's first
  std::span<const float> q, k, v;          // [M], [M], [D]
  float gamma = 1, mu = 1;                 // as in HeadTrace
  std::span<const float> before, after;    // the state, [M, D]
};

// Is told every step of a feed that names it: token by token within a layer, layer by layer within a pass.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void Observe(const MemoryStep& step) = 0;
};

// Tokens for one session of a batch.
struct Feed {
  Session* session = nullptr;
  std::span<const int32_t> tokens;
  Want want = Want::kLast;
  Trace* trace = nullptr;
  StepObserver* observer = nullptr;  // computes token by token, as a trace does; not for attention
};

// One engine is used by one thread at a time; it has threads of its own. Several engines may share a model.
class Engine {
 public:
  // `threads` counts the caller; 0: one per core.
  explicit Engine(std::shared_ptr<const Model> model, int threads = 0);
  ~Engine();

  const Model& model() const;
  int threads() const;
  // A session of this engine's model that has read nothing.
  Session NewSession() const;

  // Appends each feed's tokens to its session. Feeds may be of different lengths: a step of 16 sessions, a
  // prompt, or a prompt beside 15 steps. No feed influences another, not in one bit. Throws Error before
  // anything is computed for a feed without tokens, a token outside the vocabulary, a session of another
  // model, or a session that comes twice.
  void Run(std::span<const Feed> feeds);

  // The logits of feed `i` of the last Run: [vocabulary] for kLast, [tokens, vocabulary] for kAll, empty for
  // kNone. Valid until the next Run.
  std::span<const float> Logits(size_t i) const;

  // One feed: the logits behind the last token.
  std::span<const float> Append(Session& session, std::span<const int32_t> tokens);

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_ENGINE_H_
