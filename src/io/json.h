// JSON from untrusted sources: parsing with limits, and typed access whose errors name the source and the
// key.
//
// Only the forward declarations of nlohmann-json are included here; a .cc file that looks inside a value
// includes <nlohmann/json.hpp> itself.
#ifndef LATTICE_IO_JSON_H_
#define LATTICE_IO_JSON_H_

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lattice::io {

// Limits of a text that is parsed. A value of two bytes takes up to 100 bytes of memory.
struct JsonLimits {
  int depth = 64;
  size_t values = size_t{1} << 20;
  size_t bytes = size_t{256} << 20;
};

// Parses strict JSON: one value, valid UTF-8, no duplicate keys, within `limits`. Time and memory are linear
// in the text (times the logarithm of the keys of an object). `source` is what errors call the text, usually
// a path. Errors name the position and quote little.
nlohmann::json ParseJson(std::string_view text, std::string_view source, const JsonLimits& limits = {});
nlohmann::json ReadJson(const std::filesystem::path& path, const JsonLimits& limits = {});

// Parses a line of a log, which may have been cut short: null when it is not valid JSON.
nlohmann::json ParseJsonLine(std::string_view line);

// The string under `field` of an object. The rest of the object is parsed but not stored, so it costs no
// memory. If the field occurs twice, the last one counts. Throws Error that says what is wrong with the text.
std::string JsonStringField(std::string_view text, std::string_view field);

// The member `key` of an object as T: bool, int64_t, double (an integer is accepted) or std::string. Throws
// when `object` is no object, the key is missing or the type differs.
template <typename T>
T GetJson(const nlohmann::json& object, std::string_view key, std::string_view source);

// As one line without spaces, or indented by two spaces with a final newline. Throws when a string is not
// UTF-8.
std::string DumpJson(const nlohmann::json& value);
std::string DumpJsonIndented(const nlohmann::json& value);

}  // namespace lattice::io

#endif  // LATTICE_IO_JSON_H_
