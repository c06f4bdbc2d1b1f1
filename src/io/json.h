// JSON that may come from anyone: parsing with limits, and typed access whose errors name the source and the
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

constexpr int kMaxJsonDepth = 64;
constexpr size_t kMaxJsonBytes = size_t{256} << 20;

// Strict JSON: one value, valid UTF-8, no duplicate keys, nesting up to kMaxJsonDepth. `source` is the name
// that errors give it, a path as a rule.
nlohmann::json ParseJson(std::string_view text, std::string_view source);
nlohmann::json ReadJson(const std::filesystem::path& path);

// The member `key` of an object as T: bool, int64_t, double (an integer is accepted) or std::string. Throws
// when `object` is no object, the key is missing or the type differs.
template <typename T>
T GetJson(const nlohmann::json& object, std::string_view key, std::string_view source);

// One line without spaces around it, or two-space indented with a final newline. Throws when a string is not
// UTF-8.
std::string DumpJson(const nlohmann::json& value);
std::string DumpJsonIndented(const nlohmann::json& value);

}  // namespace lattice::io

#endif  // LATTICE_IO_JSON_H_
