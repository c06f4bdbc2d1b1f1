// Chooses the instruction set of the kernels: maps our names to Highway's targets and applies the choice.
#include "kernels/isa.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <cstdlib>
#include <mutex>

#include "base/error.h"
#include "hwy/highway.h"
#include "kernels/isa_level.h"

namespace lattice::kernels {
namespace {

struct Isa {
  const char* name;
  IsaLevel level;
  int64_t target;  // the Highway target; faster targets have lower bits
};

// Slowest first. HWY_STATIC_TARGET is what every CPU of the architecture has; on 64-bit ARM that includes NEON, for
// which this Highway has one target, whatever dot products a CPU adds to it.
constexpr Isa kIsas[] = {
#if HWY_ARCH_ARM
    {"neon", IsaLevel::kNeon, HWY_STATIC_TARGET},
    {"neon-dot", IsaLevel::kNeonDot, HWY_STATIC_TARGET},
    {"neon-bf16", IsaLevel::kNeonBf16, HWY_STATIC_TARGET},
#elif HWY_ARCH_WASM
    {"wasm", IsaLevel::kScalar, HWY_STATIC_TARGET},
#else
    {"scalar", IsaLevel::kScalar, HWY_STATIC_TARGET},
#endif
#if HWY_ARCH_X86
    {"sse4", IsaLevel::kSse4, HWY_SSE4},
    {"avx2", IsaLevel::kAvx2, HWY_AVX2},
    {"avx512", IsaLevel::kAvx512, HWY_AVX3},
#endif
};

// Whether the CPU has the instructions that Highway's target does not imply.
bool HasExtensions([[maybe_unused]] IsaLevel level) {
#if defined(__aarch64__) && defined(__linux__)
  if (level >= IsaLevel::kNeonDot && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0) return false;
  constexpr unsigned long kBoth = HWCAP2_BF16 | HWCAP2_I8MM;
  return level < IsaLevel::kNeonBf16 || (getauxval(AT_HWCAP2) & kBoth) == kBoth;
#else
  return level == kIsas[0].level || HWY_ARCH_X86;
#endif
}

#if HWY_ARCH_WASM
// A module has the instructions that it was compiled with.
bool Runs(const Isa& isa) { return HasExtensions(isa.level); }
void Choose(const Isa&) {}
#else
// Whether this build and this CPU have it.
bool Runs(const Isa& isa) {
  const bool target =
      isa.target == HWY_STATIC_TARGET || (hwy::SupportedTargets() & HWY_TARGETS & isa.target) != 0;
  return target && HasExtensions(isa.level);
}
void Choose(const Isa& isa) { hwy::GetChosenTarget().Update(isa.target); }
#endif

const Isa* current = nullptr;

void Apply(const std::string& name, const char* source) {
  std::string known;
  for (const Isa& isa : kIsas) {
    if (!Runs(isa)) continue;
    known += known.empty() ? isa.name : std::string(", ") + isa.name;
    if (name != isa.name) continue;
    Choose(isa);
    current = &isa;
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
  return current->name;
}

IsaLevel CurrentLevel() {
  InitIsa();
  return current->level;
}

bool UsesAvx512() { return CurrentLevel() == IsaLevel::kAvx512; }

void SetIsa(const std::string& name) {
  InitIsa();
  Apply(name, "the requested instruction set");
}

}  // namespace lattice::kernels
