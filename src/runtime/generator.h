// Text from a trained model, token by token.
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

// Memory does not grow with the text, except for the transformer's cache: a prompt is read in blocks, then
// every token is one step of the recurrence.
class Generator {
 public:
  // A model with its tokenizer, which has no ids that the model does not know. `threads` 0: one per core.
  Generator(std::shared_ptr<const Model> model, std::shared_ptr<const text::Tokenizer> tokenizer,
            int threads);
  ~Generator();

  // Hands pieces of text to `show` as they are certain: whole UTF-8 characters, always. Ends at the
  // end-of-text token. The same seed gives the same text.
  GenerationFigures Generate(std::string_view prompt, const GenerationOptions& options,
                             const std::function<void(std::string_view)>& show);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_GENERATOR_H_
