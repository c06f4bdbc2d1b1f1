// Computes: feeds tokens to sessions and gives logits.
#ifndef LATTICE_RUNTIME_ENGINE_H_
#define LATTICE_RUNTIME_ENGINE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/model.h"
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
  // Is told every step: token by token within a layer, layer by layer within a pass. The results do not
  // change, but are computed token by token. Attention has no such steps.
  StepObserver* observer = nullptr;
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
