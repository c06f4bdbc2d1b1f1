// A memory of one's own in a shared library, loaded at run time: `--plugin libmine.so` of the programs,
// lattice.load_memory("libmine.so") in Python. docs/adding-a-memory.md makes one.
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

// A plug-in fits the library whose headers it was compiled with. The number changes with the layout of
// anything below; the sizes catch what was forgotten.
inline constexpr uint32_t kPluginAbi = 1;
inline constexpr char kPluginVersion[] = "0.1.0";

// What the entry point of a plug-in returns. The first members never change their place: they are read
// before the rest is believed.
struct Plugin {
  uint32_t abi = kPluginAbi;
  uint32_t size = sizeof(Plugin);
  const char* version = kPluginVersion;

  // Chooses the instruction set, once, in the plug-in's own copy of the library.
  void (*init_isa)() = &InitIsa;

  MemoryInfo info;
  KernelSet kernels, shrink_kernels = {};
  // The equations as plain loops, for tests; may be left out.
  ReferenceRule<float> reference_f32 = {};
  ReferenceRule<double> reference_f64 = {};
};

// Opens the library, asks its entry point, and registers its memory (registry.h). A library that is loaded
// already is left as it is. Throws Error, and registers nothing, when the file is missing or no plug-in, was
// built for another version, or describes a memory that cannot be registered. The library stays open.
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
