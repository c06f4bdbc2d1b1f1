#include "nn/flat_states.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/registry.h"

namespace lattice::nn {
namespace {

// A tensor in the layout: its dimensions (-1: it is not there), then their sizes, filled up with zeros.
constexpr int64_t kMostDimensions = 4;
constexpr int64_t kEntry = 1 + kMostDimensions;

int64_t GatesOf(const LanguageModel& model, size_t block) {
  const model::ModelConfig layer = model.config().Layer(static_cast<int64_t>(block));
  return static_cast<int64_t>(kernels::FindMemory(layer.mixer).gates.size());
}

// The tensors of a block's state in one order, those that are not there included.
std::vector<at::Tensor> TensorsOf(const BlockState& state, int64_t gates) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, member] : kStateTensors) tensors.push_back(state.*member);
  tensors.insert(tensors.end(), state.waiting.begin(), state.waiting.end());
  tensors.resize(kStateTensors.size() + static_cast<size_t>(gates));
  return tensors;
}

class Reader {
 public:
  explicit Reader(const at::Tensor& layout)
      : numbers_(layout.const_data_ptr<int64_t>(), static_cast<size_t>(layout.numel())) {}

  int64_t Next() { return numbers_[at_++]; }

  // The sizes of the next tensor; nothing where there is none.
  std::optional<std::vector<int64_t>> Sizes() {
    const int64_t dimensions = Next();
    std::vector<int64_t> sizes;
    for (int64_t i = 0; i < kMostDimensions; ++i) sizes.push_back(Next());
    if (dimensions == -1) return std::nullopt;
    const bool valid = dimensions >= 0 && dimensions <= kMostDimensions &&
                       std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; });
    Check(valid, "[states] a tensor with ", dimensions, " dimensions; this is no layout of states");
    sizes.resize(static_cast<size_t>(dimensions));
    return sizes;
  }

 private:
  std::span<const int64_t> numbers_;
  size_t at_ = 0;
};

void CheckLayout(const LanguageModel& model, const at::Tensor& layout) {
  const int64_t length = LayoutLength(model);
  Check(layout.scalar_type() == at::kLong && layout.dim() == 1 && layout.size(0) == length &&
            layout.is_contiguous(),
        "[states] a layout has ", length, " numbers, got ", layout.numel());
}

// The numbers of each tensor that is there, in order.
std::vector<int64_t> Lengths(const LanguageModel& model, const at::Tensor& layout) {
  CheckLayout(model, layout);
  Reader reader(layout);
  std::vector<int64_t> lengths;
  for (size_t block = 0; block < static_cast<size_t>(model.config().layers); ++block) {
    reader.Next();
    const size_t count = kStateTensors.size() + static_cast<size_t>(GatesOf(model, block));
    for (size_t i = 0; i < count; ++i) {
      const auto sizes = reader.Sizes();
      if (!sizes.has_value()) continue;
      const std::optional<int64_t> elements = TryElements(*sizes);
      Check(elements.has_value(), "[states] a tensor with more elements than 64 bits can count");
      lengths.push_back(*elements);
    }
  }
  return lengths;
}

}  // namespace

int64_t LayoutLength(const LanguageModel& model) {
  int64_t length = 0;
  for (size_t block = 0; block < static_cast<size_t>(model.config().layers); ++block)
    length += 1 + (static_cast<int64_t>(kStateTensors.size()) + GatesOf(model, block)) * kEntry;
  return length;
}

int64_t ValuesLength(const LanguageModel& model, const at::Tensor& layout) {
  int64_t sum = 0;
  for (const int64_t length : Lengths(model, layout)) sum = CheckedAdd(sum, length, "size of the states");
  return sum;
}

FlatStates Flatten(const LanguageModel& model, const States& states) {
  std::vector<int64_t> layout;
  std::vector<at::Tensor> parts;
  for (size_t block = 0; block < states.size(); ++block) {
    layout.push_back(states[block].position);
    for (const at::Tensor& tensor : TensorsOf(states[block], GatesOf(model, block))) {
      std::vector<int64_t> sizes = tensor.defined() ? tensor.sizes().vec() : std::vector<int64_t>();
      Check(static_cast<int64_t>(sizes.size()) <= kMostDimensions, "[states] a state with ", sizes.size(),
            " dimensions; expected at most ", kMostDimensions);
      layout.push_back(tensor.defined() ? static_cast<int64_t>(sizes.size()) : -1);
      sizes.resize(static_cast<size_t>(kMostDimensions));
      layout.insert(layout.end(), sizes.begin(), sizes.end());
      if (tensor.defined()) parts.push_back(tensor.flatten());
    }
  }
  FlatStates flat = {at::tensor(layout, at::kLong), at::cat(parts)};
  CheckLayout(model, flat.layout);
  return flat;
}

States Unflatten(const LanguageModel& model, const FlatStates& flat) {
  // Split at once: the gradients then join in one piece, not in as many sums over all values as there are tensors.
  const std::vector<at::Tensor> parts = at::split_with_sizes(flat.values, Lengths(model, flat.layout));
  States states(static_cast<size_t>(model.config().layers));
  Reader reader(flat.layout);
  auto part = parts.begin();
  const auto next = [&] {
    const auto sizes = reader.Sizes();
    return sizes.has_value() ? (part++)->view(*sizes) : at::Tensor();
  };
  for (size_t block = 0; block < states.size(); ++block) {
    BlockState& state = states[block];
    state.attached = true;
    state.position = reader.Next();
    for (const auto& [name, member] : kStateTensors) state.*member = next();
    for (int64_t i = GatesOf(model, block); i > 0; --i) state.waiting.push_back(next());
    if (!state.keys.defined()) state.waiting.clear();
  }
  return states;
}

}  // namespace lattice::nn
