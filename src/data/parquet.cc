#include "data/parquet.h"

#include <dlfcn.h>

#include "base/error.h"

namespace lattice::data {
namespace {

// The module is in lib/, beside the bin/ of the program.
std::filesystem::path ModulePath() {
  return std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() / "lib/lattice_parquet.so";
}

OpenParquetFunction LoadModule() {
  const std::filesystem::path path = ModulePath();
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    Fail(
        "[data] this build cannot read parquet: it was configured without pyarrow; run `./lattice python -m "
        "pip install pyarrow` and then `./lattice clean && ./lattice setup` (",
        ::dlerror(), ")");
  }
  void* symbol = ::dlsym(module, kParquetSymbol);
  Check(symbol != nullptr, "[data] ", path.string(), " is not the parquet module of this program");
  return reinterpret_cast<OpenParquetFunction>(symbol);
}

}  // namespace

std::unique_ptr<TextSource> OpenParquet(const std::filesystem::path& path, const std::string& column) {
  Check(std::filesystem::is_regular_file(path), "[data] there is no file ", path.string());
  static const OpenParquetFunction open = LoadModule();
  return std::unique_ptr<TextSource>(open(path.c_str(), column.c_str()));
}

}  // namespace lattice::data
