// Any bytes as a corpus: plain text or JSON lines, as they are or compressed. The first byte says which.
#include <iterator>

#include "allocation_bound.h"
#include "base/error.h"
#include "data/text_source.h"
#include "input_file.h"
#include "io/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr const char* kEndings[] = {".txt",       ".jsonl",    ".txt.gz",   ".txt.zst",
                                             ".jsonl.zst", ".jsonl.gz", ".jsonl.xz", ".txt.xz"};
  constexpr size_t kMostText = size_t{4}
                               << 20;  // what is longer comes in pieces of bounded size, so some will do
  if (size == 0) return 0;
  const lattice::fuzz::InputFile input(data + 1, size - 1, kEndings[data[0] % std::size(kEndings)]);
  // Windows of decoders and the longest piece of a document are bounded, but not by the size of the file.
  const lattice::fuzz::AllocationBound bound(size, {.bytes = size_t{160} << 20});
  try {
    const auto source = lattice::data::OpenTextSource(input.path(), {});
    size_t read = 0;
    while (const auto record = source->Next()) {
      if (record->text.size() > lattice::data::kLongestPiece) __builtin_trap();
      if (record->json) (void)lattice::io::JsonStringField(record->text, "text");
      if ((read += record->text.size()) > kMostText) break;
    }
  } catch (const lattice::Error&) {
  }
  return 0;
}
