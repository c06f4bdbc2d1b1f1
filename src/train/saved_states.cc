// Names and stores the recurrent states that are carried over segments.
#include "train/saved_states.h"

#include <ATen/ATen.h>

#include <array>
#include <string>
#include <utility>

#include "base/error.h"

namespace lattice::train {
namespace {

constexpr std::array<std::pair<const char*, at::Tensor nn::BlockState::*>, 6> kMembers = {{
    {"pre_conv", &nn::BlockState::pre_conv},
    {"conv_qk", &nn::BlockState::conv_qk},
    {"conv_v", &nn::BlockState::conv_v},
    {"memory", &nn::BlockState::memory},
    {"keys", &nn::BlockState::keys},
    {"values", &nn::BlockState::values},
}};

std::string BlockName(size_t micro, size_t block) { return StrCat("micro.", micro, ".blocks.", block, "."); }

}  // namespace

NamedTensors StateTensors(const std::vector<nn::States>& states) {
  NamedTensors tensors;
  for (size_t micro = 0; micro < states.size(); ++micro) {
    for (size_t block = 0; block < states[micro].size(); ++block) {
      for (const auto& [name, member] : kMembers) {
        const at::Tensor& tensor = states[micro][block].*member;
        if (tensor.defined()) tensors[BlockName(micro, block) + name] = tensor;
      }
    }
  }
  return tensors;
}

std::vector<nn::States> LoadStates(const std::filesystem::path& path) {
  NamedTensors tensors = ReadTensors(path);
  std::vector<nn::States> states;
  size_t taken = 0;
  for (size_t micro = 0;; ++micro) {
    nn::States blocks;
    for (size_t block = 0;; ++block) {
      nn::BlockState state;
      const size_t before = taken;
      for (const auto& [name, member] : kMembers) {
        const auto found = tensors.find(BlockName(micro, block) + name);
        if (found == tensors.end()) continue;
        state.*member = found->second;
        ++taken;
      }
      if (taken == before) break;
      blocks.push_back(std::move(state));
    }
    if (blocks.empty()) break;
    states.push_back(std::move(blocks));
  }
  Check(taken == tensors.size(), "[resume] ", path.string(), " holds tensors that are no states");
  return states;
}

}  // namespace lattice::train
