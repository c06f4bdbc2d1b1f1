// Chooses the instruction set of the kernels: maps our names to Highway's targets and applies the choice.
#include "kernels/isa.h"

#include <cstdlib>
#include <mutex>

#include "base/error.h"
#include "hwy/highway.h"

namespace lattice::kernels {
namespace {

struct Isa {
  const char* name;
  int64_t target;  // the Highway target; faster targets have lower bits
};

// Slowest first. HWY_STATIC_TARGET is what every CPU of the architecture has; on 64-bit ARM that includes NEON.
constexpr Isa kIsas[] = {
#if HWY_ARCH_ARM
    {"neon", HWY_STATIC_TARGET},
#else
    {"scalar", HWY_STATIC_TARGET},
#endif
#if HWY_ARCH_X86
    {"avx2", HWY_AVX2},
    {"avx512", HWY_AVX3},
#endif
};

// Whether this build and this CPU have it.
bool Runs(const Isa& isa) {
  return isa.target == HWY_STATIC_TARGET || (hwy::SupportedTargets() & HWY_TARGETS & isa.target) != 0;
}

std::string current;

void Apply(const std::string& name, const char* source) {
  std::string known;
  for (const Isa& isa : kIsas) {
    if (!Runs(isa)) continue;
    known += known.empty() ? isa.name : std::string(", ") + isa.name;
    if (name != isa.name) continue;
    hwy::GetChosenTarget().Update(isa.target);
    current = name;
    return;
  }
  Fail("[isa] ", source, " is '", name, "', but this CPU can run: ", known);
}

std::once_flag once;

}  // namespace

std::vector<std::string> AvailableIsas() {
  std::vector<std::string> names;
  for (const Isa& isa : kIsas) {
    if (Runs(isa)) names.push_back(isa.name);
  }
  return names;
}

void InitIsa() {
  std::call_once(once, [] {
    const char* requested = std::getenv("LATTICE_ISA");
    const bool set = requested != nullptr && *requested != '\0';
    Apply(set ? requested : AvailableIsas().back(), "LATTICE_ISA");
  });
}

std::string CurrentIsa() {
  InitIsa();
  return current;
}

bool UsesAvx512() {
  InitIsa();
  return current == "avx512";
}

void SetIsa(const std::string& name) {
  InitIsa();
  Apply(name, "the requested instruction set");
}

}  // namespace lattice::kernels
