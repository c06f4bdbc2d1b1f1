// The table of all memories, and the checks of a description before it is registered.
#include "kernels/registry.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "kernels/memories.h"

namespace lattice::kernels {
namespace {

std::string AllNames() {
  std::string names;
  for (const Memory& memory : Memories()) names += (names.empty() ? "" : ", ") + memory.name;
  return names;
}

bool IsWord(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name[0] >= 'a' && std::all_of(name.begin(), name.end(), letter);
}

bool IsComplete(const KernelSet& k) {
  return k.forward_f32 != nullptr && k.forward_f64 != nullptr && k.backward_f32 != nullptr &&
         k.backward_f64 != nullptr;
}

// Whether a gate of this name would collide with another tensor of a block or argument of the operators.
bool IsTaken(std::string_view gate) {
  constexpr std::string_view kTaken[] = {"q",        "k",    "v",      "qk",     "gate",       "out",
                                         "out_norm", "skip", "state0", "state",  "cu_seqlens", "method",
                                         "chunk",    "rule", "conv_q", "conv_k", "conv_v",     "log_decay"};
  return std::find(std::begin(kTaken), std::end(kTaken), gate) != std::end(kTaken);
}

void CheckGates(const MemoryInfo& info) {
  Check(info.gates.size() <= kMaxGates, "[memory] '", info.name, "' has ", info.gates.size(),
        " gates; a memory has at most ", kMaxGates);
  std::set<std::string> names;
  int per_slot = 0, decays = 0, shrinks = 0;
  for (const GateInfo& gate : info.gates) {
    Check(IsWord(gate.name) && !IsTaken(gate.name), "[memory] '", info.name, "' has a gate named '",
          gate.name, "'; a gate needs a name of small letters that is not used for something else");
    Check(names.insert(gate.name).second, "[memory] '", info.name, "' has two gates named '", gate.name, "'");
    Check(gate.per_slot == (gate.form == GateForm::kSlotSigmoid) || gate.form == GateForm::kNone,
          "[memory] gate '", gate.name, "' of '", info.name,
          "': the form kSlotSigmoid, and no other, makes a value a slot");
    Check(!(gate.required && gate.form == GateForm::kNone), "[memory] gate '", gate.name, "' of '", info.name,
          "' is required, but no model can make it: give it a form");
    Check(!(gate.required && gate.role == GateRole::kShrink), "[memory] gate '", gate.name, "' of '",
          info.name, "': a shrink gate must be optional");
    per_slot += gate.per_slot ? 1 : 0;
    decays += gate.form == GateForm::kDecay ? 1 : 0;
    shrinks += gate.role == GateRole::kShrink ? 1 : 0;
  }
  Check(per_slot <= 1 && decays <= 1 && shrinks <= 1, "[memory] '", info.name,
        "' has more than one gate per slot, decay or shrink gate");
  Check(!info.step_scales_values || decays == 1, "[memory] '", info.name,
        "' scales values by the step of a decay gate, but has none");
}

void CheckMemory(const Memory& memory) {
  Check(IsWord(memory.name), "[memory] '", memory.name,
        "' is no name for a memory; use small letters, digits and _");
  for (const Memory& known : Memories()) {
    Check(known.name != memory.name && known.RecurName() != memory.RecurName(), "[memory] the name '",
          memory.name, "' is taken; choose another");
    Check(!memory.objective.has_value() || known.objective != memory.objective, "[memory] '", memory.name,
          "' has the objective of ", known.name, "; leave it empty");
  }
  CheckGates(memory);
  Check(IsComplete(memory.kernels), "[memory] '", memory.name,
        "' lacks kernels; pass the KernelSet that LATTICE_DISPATCH_RULE makes");
  Check(memory.Shrinks() == IsComplete(memory.shrink_kernels), "[memory] '", memory.name,
        "' must have a shrink gate and kernels for it, or neither");
  Check(memory.zeros == ZeroStart::kValid || memory.learned_state, "[memory] '", memory.name,
        "' cannot start from zeros, so its state must be learned");
  Check(memory.extra_state.empty() || !memory.learned_state, "[memory] '", memory.name,
        "' keeps numbers beside its matrix, so its state cannot be learned");
}

std::vector<std::string_view>& NameTable() {
  static std::vector<std::string_view> names;
  return names;
}

}  // namespace

std::deque<Memory>& MemoryTable() {
  static std::deque<Memory> memories = LibraryMemories();
  return memories;
}

const std::deque<Memory>& Memories() { return MemoryTable(); }

std::span<const std::string_view> MemoryNames() {
  std::vector<std::string_view>& names = NameTable();
  if (names.size() != Memories().size()) {
    names.clear();
    for (const Memory& memory : Memories()) names.push_back(memory.name);
  }
  return names;
}

void RegisterMemory(MemoryInfo info, const KernelSet& kernels, const KernelSet& shrink_kernels) {
  Memory memory{std::move(info), kernels, shrink_kernels};
  CheckMemory(memory);
  MemoryTable().push_back(std::move(memory));
}

const Memory& FindMemory(std::string_view name) {
  for (const Memory& memory : Memories()) {
    if (memory.name == name) return memory;
  }
  Fail("[memory] unknown memory \"", name, "\"", DidYouMean(name, MemoryNames()),
       " The memories are: ", AllNames(), "; one of your own is loaded with --plugin");
}

const Memory& FindMemory(Objective objective) {
  for (const Memory& memory : Memories()) {
    if (memory.objective == objective) return memory;
  }
  Fail("[memory] no memory has the objective ", Name(objective));
}

}  // namespace lattice::kernels
