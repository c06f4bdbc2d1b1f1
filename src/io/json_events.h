// Handlers of the events of the JSON library's reader: what all of them refuse.
#ifndef LATTICE_IO_JSON_EVENTS_H_
#define LATTICE_IO_JSON_EVENTS_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "io/json.h"

namespace lattice::io {

// The library's messages start with "[json.exception.parse_error.101] "; ours start with the operation.
std::string_view WithoutJsonTag(std::string_view message);

// Keeps the limits and says where a text is no JSON. A handler says what it makes of a value, and calls
// Value() for each, Open() and Close() around objects and arrays.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Errors start with `prefix`.
  JsonEvents(std::string prefix, const JsonLimits& limits) : prefix_(std::move(prefix)), limits_(limits) {}

  // Reads the whole text. Throws Error.
  void Read(std::string_view text);

  bool binary(binary_t&) final { return false; }  // no event of JSON text
  bool parse_error(size_t position, const std::string& token, const nlohmann::detail::exception& error) final;

 protected:
  void Value();
  void Open();
  void Close() { --depth_; }
  // Objects and arrays that are open.
  int depth() const { return depth_; }
  const std::string& prefix() const { return prefix_; }

 private:
  std::string prefix_;
  JsonLimits limits_;
  int depth_ = 0;
  size_t values_ = 0;
};

}  // namespace lattice::io

#endif  // LATTICE_IO_JSON_EVENTS_H_
