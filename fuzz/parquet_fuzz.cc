// Any bytes as a parquet file: refused with an Error, or texts of its column. Arrow is not compiled for fuzzing, so
// coverage is that of our module only.
#include "allocation_bound.h"
#include "base/error.h"
#include "data/parquet.h"
#include "input_file.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // Arrow's own allocators hide from AddressSanitizer.
  return ::setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 1);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lattice::fuzz::InputFile input(data, size);
  try {
    const auto source = lattice::data::OpenParquet(input.path(), "text");
    size_t read = 0;
    while (const auto record = source->Next()) {
      if ((read += record->text.size()) > size_t{4} << 20) break;
    }
  } catch (const lattice::Error&) {
  }
  return 0;
}
