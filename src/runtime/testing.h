// Small models and tokens for the runtime's tests.
#ifndef LATTICE_RUNTIME_TESTING_H_
#define LATTICE_RUNTIME_TESTING_H_

#include <string>
#include <vector>

#include "model/config.h"
#include "model/testing.h"

namespace lattice::runtime {

inline model::ModelConfig TinyConfig(std::string_view mixer) {
  model::ModelConfig config;
  config.vocab_size = 67;
  config.layers = 2;
  config.width = 40;
  config.heads = 2;
  // Larger than for training, so that the activations are large enough to reveal differences.
  config.init_std = 0.2;
  return model::WithMixers(config, mixer, 12);
}

inline std::vector<std::string> AllMixers() { return model::MixersAndStacks(); }

inline std::vector<int32_t> TestTokens(int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>((i * i * 31 + i * 7 + count) % 67));
  return tokens;
}

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_TESTING_H_
