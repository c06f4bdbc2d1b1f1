// Models whose layers differ, or have windows, for tests that walk over all mixers.
#ifndef LATTICE_MODEL_TESTING_H_
#define LATTICE_MODEL_TESTING_H_

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/registry.h"
#include "model/config.h"

namespace lattice::model {

// All memories, and stacks: layers that differ, windows beside memories of every kind of gate and state, a window alone,
// and (with a colon in front) a memory in a block of attention.
inline std::vector<std::string> MixersAndStacks() {
  std::vector<std::string> names(kernels::MemoryNames().begin(), kernels::MemoryNames().end());
  for (const char* stack :
       {"lattice_dec+window", "transformer+window", "gla+window", "mlstm+window,transformer",
        "lattice_dec,transformer", "transformer,gated_deltanet+window", ":lattice_dec", ":rwkv7"})
    names.emplace_back(stack);
  return names;
}

// Gives a config one of these mixers; windows are so small that tokens leave them in a short test. slots is for memories
// in the paper's block.
inline ModelConfig WithMixers(ModelConfig config, std::string_view name, int64_t slots) {
  const bool attention = name.starts_with(':') || name.find('+') != std::string_view::npos;
  if (name.starts_with(':')) name.remove_prefix(1);
  (name.find(',') == std::string_view::npos ? config.mixer : config.mixers) = name;
  if (attention) {
    config.window = 5;
    config.sinks = 2;
    config.block = BlockKind::kAttention;
    config.kv_heads = 1;
    config.output_gate = name.starts_with("gla") ? OutputGate::kSigmoid : OutputGate::kNone;
  } else if (config.HasMemory()) {
    config.slots = slots;
  }
  return config;
}

// A name that a test may have.
inline std::string TestName(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

}  // namespace lattice::model

#endif  // LATTICE_MODEL_TESTING_H_
