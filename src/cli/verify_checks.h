// Compares the runtime with the torch model on the same weights, for `lattice verify`.
#ifndef LATTICE_CLI_VERIFY_CHECKS_H_
#define LATTICE_CLI_VERIFY_CHECKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "cli/verify_reference.h"
#include "runtime/model.h"

namespace lattice::cli {

// The largest differences of logits, relative to the largest logit of torch. Infinite when one is NaN.
struct Differences {
  double prefill = 0;  // the text in one block
  double steps = 0;    // token by token
  double loaded = 0;   // with the session saved and loaded in the middle
  double batched = 0;  // in a batch with other sessions

  double Largest() const;
};

struct FormatFigures {
  Differences to_torch;
  // Steps, loaded and batched are bit-identical to prefill.
  bool same_bits = true;
  double nats = 0;  // mean cross-entropy
  // The increase of the perplexity over torch's, in percent.
  double perplexity_cost = 0;
  // How many greedily decoded tokens agree with torch's before the first difference; none: all.
  std::optional<int64_t> first_greedy_difference;
};

double LogitScale(const TorchReference& reference);

FormatFigures CheckFormat(const std::shared_ptr<const runtime::Model>& model, std::span<const int32_t> tokens,
                          const VerifyParts& parts, const TorchReference& reference, int threads);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_VERIFY_CHECKS_H_
