// The inference engine: appends tokens to sessions, in batches, and returns logits.
#ifndef LATTICE_RUNTIME_ENGINE_H_
#define LATTICE_RUNTIME_ENGINE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/model.h"
#include "runtime/product_observer.h"
#include "runtime/session.h"
#include "runtime/step_figures.h"

namespace lattice::runtime {

// Which of the fed tokens get logits.
enum class Want { kLast, kAll, kNone };

// Tokens for one session of a batch.
struct Feed {
  Session* session = nullptr;
  std::span<const int32_t> tokens;
  Want want = Want::kLast;
  // Called for every step of a recurrent memory: layer by layer within a pass, and token by token within a
  // layer. An observed feed is computed one token at a time, which is slower but changes no result. Attention
  // has no such steps and calls nothing.
  StepObserver* observer = nullptr;
  // If given, [width]: the last hidden states of the fed tokens, behind the final norm, are added to it, in their
  // order, so that the sum does not depend on how the tokens were fed.
  std::vector<double>* hidden_sum = nullptr;
};

// Has a thread pool and scratch buffers, so it may be used by one thread at a time. Several engines may share
// a model.
class Engine {
 public:
  // `threads` includes the calling thread; 0: one per core.
  explicit Engine(std::shared_ptr<const Model> model, int threads = 0);
  ~Engine();

  const Model& model() const;
  int threads() const;
  // A session of this engine's model that has read nothing.
  Session NewSession() const;

  // Appends each feed's tokens to its session. Feeds may differ in length, so prefill and decode mix freely:
  // one token each for 16 sessions, one prompt, or a prompt together with 15 decode steps. Each feed's result
  // has the same bits whatever else is in the batch. Throws Error, before anything is computed, for a feed
  // without tokens, a token outside the vocabulary, a session of another model, or a session listed twice.
  void Run(std::span<const Feed> feeds);

  // The logits of feed `i` of the last Run: [vocabulary] for kLast, [tokens, vocabulary] for kAll, empty for
  // kNone. Valid until the next Run.
  std::span<const float> Logits(size_t i) const;

  // From now on, every Run shows the inputs of its products to `observer`, in the thread that called Run; null: to
  // nobody. It must live until then.
  void ObserveProducts(ProductObserver* observer);

  // Runs a single feed and returns the logits after its last token.
  std::span<const float> Append(Session& session, std::span<const int32_t> tokens);

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_ENGINE_H_
