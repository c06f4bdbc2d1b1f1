// Names and stores the recurrent states that are carried over segments.
#include "train/saved_states.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace lattice::train {
namespace {

std::string BlockName(size_t micro, size_t block) { return StrCat("micro.", micro, ".blocks.", block, "."); }

}  // namespace

NamedTensors StateTensors(const std::vector<nn::States>& states, int64_t first) {
  NamedTensors tensors;
  for (size_t micro = 0; micro < states.size(); ++micro) {
    for (size_t block = 0; block < states[micro].size(); ++block) {
      for (const auto& [name, member] : nn::kStateTensors) {
        const at::Tensor& tensor = states[micro][block].*member;
        if (tensor.defined()) tensors[BlockName(static_cast<size_t>(first) + micro, block) + name] = tensor;
      }
    }
  }
  return tensors;
}

std::vector<nn::States> LoadStates(const std::vector<std::filesystem::path>& files) {
  NamedTensors tensors;
  for (const std::filesystem::path& file : files) tensors.merge(ReadTensors(file));
  std::vector<nn::States> states;
  size_t taken = 0;
  for (size_t micro = 0;; ++micro) {
    nn::States blocks;
    for (size_t block = 0;; ++block) {
      nn::BlockState state;
      const size_t before = taken;
      for (const auto& [name, member] : nn::kStateTensors) {
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
  Check(taken == tensors.size(), "[resume] ", files.empty() ? "" : files.front().string(),
        " holds tensors that are no states");
  return states;
}

std::vector<nn::States> SplitStates(const std::vector<nn::States>& states, int64_t rows, int64_t first,
                                    int64_t count, int64_t micro) {
  std::vector<nn::States> parts(states.empty() ? 0 : static_cast<size_t>((count + micro - 1) / micro));
  for (nn::States& part : parts) part.resize(states.front().size());
  for (size_t block = 0; !states.empty() && block < states.front().size(); ++block) {
    for (const auto& [name, member] : nn::kStateTensors) {
      std::vector<at::Tensor> all;
      for (const nn::States& one : states) {
        if ((one.at(block).*member).defined()) all.push_back(one.at(block).*member);
      }
      if (all.empty()) continue;
      const at::Tensor joined = at::cat(all);
      Check(joined.size(0) == rows, "[resume] the carried states are of ", joined.size(0),
            " sequences, but a step of this run has ", rows,
            "; keep train.batch_tokens and train.seq_len, or start a new run");
      for (size_t part = 0; part < parts.size(); ++part) {
        const int64_t begin = static_cast<int64_t>(part) * micro;
        parts[part][block].*member = joined.narrow(0, first + begin, std::min(micro, count - begin)).clone();
      }
    }
  }
  return parts;
}

}  // namespace lattice::train
