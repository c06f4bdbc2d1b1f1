// Lookups in a memory's description, and the names of its enumerators.
#include "kernels/memory.h"

#include <iterator>

namespace lattice::kernels {
namespace {

// In the order of the enumerations.
constexpr std::string_view kObjectives[] = {"dec", "enc", "sim"};
constexpr std::string_view kNormalize[] = {"token", "chunk", "none"};
constexpr std::string_view kRoles[] = {"write", "forget", "shrink", "other"};
constexpr std::string_view kForms[] = {"none", "sigmoid", "decay", "slot_sigmoid", "linear"};

// A logarithm that stands for 0, and its negative for infinity, where a rule takes the gate's exponential or sigmoid.
constexpr double kLogOfZero = -1e30;

template <typename Enum, size_t kCount>
std::optional<Enum> Named(const std::string_view (&words)[kCount], std::string_view word) {
  for (size_t i = 0; i < kCount; ++i) {
    if (words[i] == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

double IdleValue(const GateInfo& gate) {
  const bool logarithm = gate.form == GateForm::kLinear;
  switch (gate.role) {
    case GateRole::kWrite:
      return logarithm ? kLogOfZero : 0;
    case GateRole::kForget:
      return logarithm ? -kLogOfZero : 1;
    case GateRole::kShrink:
    case GateRole::kOther:
      return 0;
  }
  return 0;
}

int MemoryInfo::FindGate(GateRole role) const {
  for (size_t i = 0; i < gates.size(); ++i) {
    if (gates[i].role == role) return static_cast<int>(i);
  }
  return -1;
}

int MemoryInfo::FindGate(std::string_view gate) const {
  for (size_t i = 0; i < gates.size(); ++i) {
    if (gates[i].name == gate) return static_cast<int>(i);
  }
  return -1;
}

std::string_view Name(Objective objective) { return kObjectives[static_cast<size_t>(objective)]; }
std::string_view Name(Normalize normalize) { return kNormalize[static_cast<size_t>(normalize)]; }
std::string_view Name(GateRole role) { return kRoles[static_cast<size_t>(role)]; }
std::string_view Name(GateForm form) { return kForms[static_cast<size_t>(form)]; }
std::optional<Objective> ObjectiveNamed(std::string_view word) { return Named<Objective>(kObjectives, word); }
std::optional<Normalize> NormalizeNamed(std::string_view word) { return Named<Normalize>(kNormalize, word); }

}  // namespace lattice::kernels
