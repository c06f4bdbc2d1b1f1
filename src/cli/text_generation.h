// Text from a trained model, token by token. This header needs no torch.
#ifndef LATTICE_CLI_TEXT_GENERATION_H_
#define LATTICE_CLI_TEXT_GENERATION_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "cli/sampler.h"

namespace lattice::cli {

struct GenerationOptions {
  int64_t tokens = 256;
  SamplerOptions sampler;
  uint64_t seed = 0;
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
  // A run or a checkpoint. Throws Error when it is neither, damaged or of another kind. `threads` 0: as torch
  // chooses.
  Generator(const std::filesystem::path& model, int threads);
  ~Generator();

  // Hands pieces of text to `show` as they are certain: whole UTF-8 characters, always. Ends at the
  // end-of-text token. The same seed gives the same text.
  GenerationFigures Generate(std::string_view prompt, const GenerationOptions& options,
                             const std::function<void(std::string_view)>& show);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lattice::cli

#endif  // LATTICE_CLI_TEXT_GENERATION_H_
