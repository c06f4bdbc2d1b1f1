// Small models and tokens for the runtime's tests.
#ifndef LATTICE_RUNTIME_TESTING_H_
#define LATTICE_RUNTIME_TESTING_H_

#include <string>
#include <vector>

#include "kernels/registry.h"
#include "model/config.h"

namespace lattice::runtime {

inline model::ModelConfig TinyConfig(std::string_view mixer) {
  model::ModelConfig config;
  config.mixer = mixer;
  config.vocab_size = 67;
  config.layers = 2;
  config.width = 40;
  config.heads = 2;
  if (!kernels::FindMemory(mixer).attention) config.slots = 12;
  // Larger than for training, so that the activations are large enough to reveal differences.
  config.init_std = 0.2;
  return config;
}

inline std::vector<std::string> AllMixers() {
  std::vector<std::string> names;
  for (const std::string_view name : kernels::MemoryNames()) names.emplace_back(name);
  return names;
}

inline std::vector<int32_t> TestTokens(int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>((i * i * 31 + i * 7 + count) % 67));
  return tokens;
}

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_TESTING_H_
