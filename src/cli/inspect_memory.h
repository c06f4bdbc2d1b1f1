// The memory microscope of `lattice inspect RUN --text ...`. No torch.
#ifndef LATTICE_CLI_INSPECT_MEMORY_H_
#define LATTICE_CLI_INSPECT_MEMORY_H_

#include <cstdint>
#include <string>

namespace lattice::cli {

struct MemoryOptions {
  std::string model;
  std::string text;       // - reads standard input
  std::string tokenizer;  // empty: the checkpoint's own
  std::string html;       // file to write; empty: none
  int64_t max_tokens = 512;
  int64_t snapshots = 32;
  int threads = 0;
  bool json = false;
};

// Runs the model on the text and prints what its memories did. Returns the exit code.
int InspectMemory(const MemoryOptions& options);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_INSPECT_MEMORY_H_
