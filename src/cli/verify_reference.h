// What the torch model says about a text: the reference of `lattice verify`, as plain numbers.
#ifndef LATTICE_CLI_VERIFY_REFERENCE_H_
#define LATTICE_CLI_VERIFY_REFERENCE_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace lattice::cli {

// How a text is used, in tokens.
struct VerifyParts {
  int64_t compared = 0;   // the first of them: every logit is compared
  int64_t prompt = 0;     // the first of them: greedy texts go on from here
  int64_t generated = 0;  // tokens of a greedy text
};

struct TorchReference {
  std::vector<float> logits;    // [compared, vocabulary]
  double nats = 0;              // mean cross-entropy of all tokens but the first
  std::vector<int32_t> greedy;  // the most likely token, again and again
};

// Evaluates the checkpoint in float32 with torch. `threads` 0: torch's choice. Throws Error when its weights
// are not those of training (int8) or are damaged.
TorchReference MakeReference(const std::filesystem::path& checkpoint, std::span<const int32_t> tokens,
                             const VerifyParts& parts, int threads);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_VERIFY_REFERENCE_H_
