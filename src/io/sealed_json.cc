#include "io/sealed_json.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/json.h"

namespace lattice::io {
namespace {

constexpr const char* kKey = "checksum";

}  // namespace

std::string SealJson(nlohmann::json object) {
  object.erase(kKey);
  // A string, because other programs read JSON numbers with 53 bits only.
  const std::string checksum = std::to_string(Checksum(DumpJsonIndented(object)));
  object[kKey] = checksum;
  return DumpJsonIndented(object);
}

void WriteSealedJson(const std::filesystem::path& path, nlohmann::json object) {
  WriteFileAtomic(path, SealJson(std::move(object)));
}

nlohmann::json ReadSealedJson(const std::filesystem::path& path) {
  const std::string text = ReadFile(path, JsonLimits{}.bytes);
  nlohmann::json object = ParseJson(text, path.string());
  Check(object.is_object() && object.erase(kKey) == 1, "[json] ", path.string(), " has no checksum");
  // Compares the text, not only the checksum: 1e5 and 1E5 parse to the same number, and so to the same
  // checksum.
  Check(SealJson(object) == text, "[json] ", path.string(), " is damaged (checksum)");
  return object;
}

}  // namespace lattice::io
