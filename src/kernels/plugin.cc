// Loads a memory from a shared library: opens it, checks its version, registers what it describes.
#include "kernels/plugin.h"

#include <dlfcn.h>

#include <memory>

#include "base/error.h"
#include "kernels/registry.h"

namespace lattice::kernels {
namespace {

using EntryPoint = const Plugin* (*)();

struct Close {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, Close>;

Library Open(const std::string& path) {
  Check(std::filesystem::exists(path), "[plugin] there is no file ", path);
#if defined(LATTICE_STATIC)
  Fail("[plugin] ", path,
       " cannot be loaded: this program is linked statically, which leaves out the loader of shared "
       "libraries; take the one of the .deb package or of the source tree");
#endif
  // An absolute path, because dlopen looks up a name without a slash in the system's directories.
  Library library(::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL));
  Check(library != nullptr, "[plugin] ", path, " cannot be opened as a shared library: ", ::dlerror());
  return library;
}

void CheckVersion(const std::string& path, const Plugin& plugin) {
  const auto rebuild = "; build it again with the headers of this version";
  Check(plugin.abi == kPluginAbi, "[plugin] ", path, " was built for plug-in interface ", plugin.abi,
        ", this library has ", kPluginAbi, rebuild);
  const bool same = plugin.size == sizeof(Plugin) && std::string_view(plugin.version) == kPluginVersion;
  Check(same, "[plugin] ", path, " was built for version ", plugin.version, ", this library is ",
        kPluginVersion, rebuild);
}

// Whether the registry has this very plug-in, not only a memory of the same name.
bool IsLoaded(const Plugin& plugin) {
  for (const Memory& memory : Memories()) {
    if (memory.name == plugin.info.name) return memory.kernels.forward_f32 == plugin.kernels.forward_f32;
  }
  return false;
}

}  // namespace

const Plugin& LoadMemory(const std::filesystem::path& path) {
  Library library = Open(path.string());
  const auto entry = reinterpret_cast<EntryPoint>(::dlsym(library.get(), "lattice_memory_plugin"));
  Check(entry != nullptr, "[plugin] ", path.string(),
        " has no lattice_memory_plugin; close its source with LATTICE_MEMORY_PLUGIN (kernels/plugin.h)");
  const Plugin* plugin = entry();
  Check(plugin != nullptr, "[plugin] ", path.string(), " gave no description of its memory");
  CheckVersion(path.string(), *plugin);
  const std::string isa = CurrentIsa();
  plugin->init_isa();
  SetIsa(isa);  // init_isa may have changed the choice, which the plug-in shares with this library
  if (!IsLoaded(*plugin)) RegisterMemory(plugin->info, plugin->kernels, plugin->shrink_kernels);
  library.release();  // never closed: the registered kernels are its code
  return *plugin;
}

}  // namespace lattice::kernels
