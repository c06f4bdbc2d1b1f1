#include "model/mixers.h"

#include <array>

#include "base/error.h"
#include "base/nearest.h"

namespace lattice::model {
namespace {

// flops_per_cell counts a product of the state with a vector as 2, a rank-one update as 2, a scaling as 1.
constexpr MixerInfo kMixers[] = {
    {.name = "lattice_dec",
     .summary = "Lattice, decoding objective",
     .objective = "dec",
     .write_gate = true,
     .forget_gate = ForgetGate::kSigmoid,
     .learned_state = true,
     .needs_state = true,
     .flops_per_cell = 9},
    {.name = "lattice_enc",
     .summary = "Lattice, encoding objective",
     .objective = "enc",
     .write_gate = true,
     .forget_gate = ForgetGate::kSigmoid,
     .learned_state = true,
     .needs_state = true,
     .flops_per_cell = 7},
    {.name = "lattice_sim",
     .summary = "Lattice, similarity objective (the paper's Dot)",
     .objective = "sim",
     .write_gate = true,
     .learned_state = true,
     .needs_state = true,
     .flops_per_cell = 7},
    {.name = "linear_attention",
     .summary = "linear attention: sum of outer products",
     .rule = "linear_attention",
     .learned_state = true,
     .flops_per_cell = 4},
    {.name = "mamba2",
     .summary = "Mamba-2: scalar decay per head",
     .rule = "mamba2",
     .forget_gate = ForgetGate::kDecay,
     .conv_v = true,
     .skip = true,
     .learned_state = true,
     .flops_per_cell = 5},
    {.name = "gla",
     .summary = "gated linear attention: decay per slot",
     .rule = "gla",
     .forget_gate = ForgetGate::kSlots,
     .learned_state = true,
     .flops_per_cell = 5},
    {.name = "deltanet",
     .summary = "DeltaNet: delta rule",
     .rule = "deltanet",
     .write_gate = true,
     .learned_state = true,
     .flops_per_cell = 6},
    {.name = "gated_deltanet",
     .summary = "Gated DeltaNet: decay, then delta rule",
     .rule = "gated_deltanet",
     .write_gate = true,
     .forget_gate = ForgetGate::kDecay,
     .learned_state = true,
     .flops_per_cell = 7},
    {.name = "rwkv7",
     .summary = "RWKV-7: decay per slot and delta rule",
     .rule = "rwkv7",
     .write_gate = true,
     .forget_gate = ForgetGate::kSlots,
     .learned_state = true,
     .flops_per_cell = 7},
    {.name = "ttt",
     .summary = "TTT: gradient step through a normalised output",
     .rule = "ttt",
     .write_gate = true,
     .learned_state = true,
     .needs_state = true,
     .flops_per_cell = 6},
    {.name = "mlstm",
     .summary = "mLSTM of xLSTM: exponential gates, normaliser state",
     .rule = "mlstm",
     .exponential_gates = true,
     .flops_per_cell = 5},
    {.name = "transformer",
     .summary = "Transformer++: softmax attention with rotary positions",
     .rule = "softmax_attention",
     .attention = true},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kMixers)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kMixers[i].name;
  return names;
}();

}  // namespace

std::span<const MixerInfo> Mixers() { return kMixers; }
std::span<const std::string_view> MixerNames() { return kNames; }

const MixerInfo& FindMixer(std::string_view name) {
  for (const MixerInfo& mixer : kMixers) {
    if (mixer.name == name) return mixer;
  }
  Fail("[model] unknown mixer \"", name, "\"", DidYouMean(name, kNames));
}

}  // namespace lattice::model
