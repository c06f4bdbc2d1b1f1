// The runtime against the torch model, on one set of weights: what `lattice verify` reports.
#ifndef LATTICE_CLI_VERIFY_CHECKS_H_
#define LATTICE_CLI_VERIFY_CHECKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "cli/verify_reference.h"
#include "runtime/model.h"

namespace lattice::cli {

// Largest differences of logits, relative to the largest of torch's. Infinite when one is not a number.
struct Differences {
  double prefill = 0;  // the text as one block
  double steps = 0;    // token by token
  double loaded = 0;   // half of it, a file, the other half
  double batched = 0;  // beside other sessions

  double Largest() const;
};

struct FormatFigures {
  Differences to_torch;
  // Steps, loaded and batched have the bits of prefill.
  bool same_bits = true;
  double nats = 0;  // mean cross-entropy
  // In percent of torch's perplexity.
  double perplexity_cost = 0;
  // Tokens behind the prompt until the greedy text is another than torch's; none: never.
  std::optional<int64_t> first_greedy_difference;
};

double LogitScale(const TorchReference& reference);

FormatFigures CheckFormat(const std::shared_ptr<const runtime::Model>& model, std::span<const int32_t> tokens,
                          const VerifyParts& parts, const TorchReference& reference, int threads);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_VERIFY_CHECKS_H_
