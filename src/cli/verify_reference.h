// The results of the torch model on a text, as plain numbers: the reference of `lattice verify`.
#ifndef LATTICE_CLI_VERIFY_REFERENCE_H_
#define LATTICE_CLI_VERIFY_REFERENCE_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace lattice::cli {

// How the text is used, in tokens.
struct VerifyParts {
  int64_t compared = 0;   // at the beginning of the text, whose logits are all compared
  int64_t prompt = 0;     // at the beginning of the text, as the prompt of greedy decoding
  int64_t generated = 0;  // by greedy decoding
};

struct TorchReference {
  std::vector<float> logits;    // [compared, vocabulary]
  double nats = 0;              // mean cross-entropy of all tokens but the first
  std::vector<int32_t> greedy;  // the greedily decoded tokens
};

// Evaluates the checkpoint in float32 with torch. `threads` 0: torch's default. Throws Error when its weights
// are damaged or converted (int8, int4).
TorchReference MakeReference(const std::filesystem::path& checkpoint, std::span<const int32_t> tokens,
                             const VerifyParts& parts, int threads);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_VERIFY_REFERENCE_H_
