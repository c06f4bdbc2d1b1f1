// Text generation with a trained model, token by token.
#ifndef LATTICE_RUNTIME_GENERATOR_H_
#define LATTICE_RUNTIME_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "runtime/model.h"
#include "runtime/sampler.h"
#include "text/tokenizer.h"

namespace lattice::runtime {

struct GenerationOptions {
  int64_t tokens = 256;
  SamplerOptions sampler;
};

struct GenerationFigures {
  int64_t prompt_tokens = 0;
  int64_t tokens = 0;
  double prompt_seconds = 0;
  double seconds = 0;
};

// The prompt is prefilled in blocks, then every token is one step of the recurrence. Memory use does not grow
// with the text, except for a transformer's KV cache.
class Generator {
 public:
  // Throws Error when the tokenizer has more ids than the model's vocabulary. `threads` 0: one per core.
  Generator(std::shared_ptr<const Model> model, std::shared_ptr<const text::Tokenizer> tokenizer,
            int threads);
  ~Generator();

  // Calls `show` with pieces of text as they become final: always whole UTF-8 characters. Stops after
  // options.tokens tokens or at the end-of-text token. The same seed gives the same text.
  GenerationFigures Generate(std::string_view prompt, const GenerationOptions& options,
                             const std::function<void(std::string_view)>& show);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_GENERATOR_H_
