// Plug-ins: a memory in a shared library of one's own, loaded at run time by `--plugin libmine.so` of the
// programs and by lattice.load_memory("libmine.so") in Python. docs/adding-a-memory.md makes one.
//
// Loading runs the library's code with all rights of the process: load only what you would run. Nothing is
// ever loaded because a checkpoint or a config names it.
#ifndef LATTICE_KERNELS_PLUGIN_H_
#define LATTICE_KERNELS_PLUGIN_H_

#include <cstdint>
#include <filesystem>

#include "kernels/isa.h"
#include "kernels/memory.h"
#include "kernels/reference/reference.h"

namespace lattice::kernels {

// A plug-in works with the library whose headers it was compiled with. kPluginAbi changes with the layout of
// anything below; Plugin::size catches a change of layout that was forgotten.
inline constexpr uint32_t kPluginAbi = 1;
inline constexpr char kPluginVersion[] = "0.1.0";

// What the entry point of a plug-in returns. The first members never move: they are checked before the rest
// is read.
struct Plugin {
  uint32_t abi = kPluginAbi;
  uint32_t size = sizeof(Plugin);
  const char* version = kPluginVersion;

  // Chooses the instruction set, once, in the plug-in's own copy of the library.
  void (*init_isa)() = &InitIsa;

  MemoryInfo info;
  KernelSet kernels, shrink_kernels = {};
  // The equations as plain loops, for tests; optional.
  ReferenceRule<float> reference_f32 = {};
  ReferenceRule<double> reference_f64 = {};
};

// Opens the library, calls its entry point, and registers its memory (registry.h). Loading a library again
// changes nothing. Throws Error, and registers nothing, when the file is missing or no plug-in, was built for
// another version, or describes a memory that cannot be registered. The library stays open.
const Plugin& LoadMemory(const std::filesystem::path& path);

}  // namespace lattice::kernels

// Makes a function that returns a lattice::kernels::Plugin the plug-in of this library.
#define LATTICE_MEMORY_PLUGIN(make)                                                 \
  extern "C" __attribute__((visibility("default"))) const lattice::kernels::Plugin* \
  lattice_memory_plugin() {                                                         \
    static const lattice::kernels::Plugin plugin = make();                          \
    return &plugin;                                                                 \
  }

#endif  // LATTICE_KERNELS_PLUGIN_H_
