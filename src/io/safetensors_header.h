// Parses the JSON header of a safetensors file and checks its syntax and fields. safetensors.cc checks the
// layout that it describes.
#ifndef LATTICE_IO_SAFETENSORS_HEADER_H_
#define LATTICE_IO_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/dtype.h"

namespace lattice::io {

struct TensorEntry {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // offsets in the data section
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorEntry> tensors;  // in the order of the file
};

// Reads the header in one pass without building a JSON tree: memory is bounded by what a valid header holds,
// and nesting deeper than the format's three levels ends the parse. Throws Error that starts with `source`.
SafetensorsHeader ParseSafetensorsHeader(std::string_view text, std::string_view source);

}  // namespace lattice::io

#endif  // LATTICE_IO_SAFETENSORS_HEADER_H_
