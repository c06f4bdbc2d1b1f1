// JSON files with a checksum of their own content: any changed byte is detected, even one that does not
// change the meaning.
#ifndef LATTICE_IO_SEALED_JSON_H_
#define LATTICE_IO_SEALED_JSON_H_

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lattice::io {

// The text of `object` with a key "checksum" added, or replaced.
std::string SealJson(nlohmann::json object);

// Writes that text, atomically.
void WriteSealedJson(const std::filesystem::path& path, nlohmann::json object);

// The object without its checksum. Throws Error that names the file when it has no checksum or is damaged.
nlohmann::json ReadSealedJson(const std::filesystem::path& path);

}  // namespace lattice::io

#endif  // LATTICE_IO_SEALED_JSON_H_
