// JSON files that carry a checksum of themselves: a changed byte anywhere is noticed, also one that leaves
// the meaning as it was.
#ifndef LATTICE_IO_SEALED_JSON_H_
#define LATTICE_IO_SEALED_JSON_H_

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lattice::io {

// Writes `object` with a key "checksum" added, atomically.
void WriteSealedJson(const std::filesystem::path& path, nlohmann::json object);

// The object without its checksum. Throws Error that names the file when it is not one, or damaged.
nlohmann::json ReadSealedJson(const std::filesystem::path& path);

}  // namespace lattice::io

#endif  // LATTICE_IO_SEALED_JSON_H_
