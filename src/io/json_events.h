// The base of handlers for the events of the JSON library's SAX parser: limits and error messages.
#ifndef LATTICE_IO_JSON_EVENTS_H_
#define LATTICE_IO_JSON_EVENTS_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "io/json.h"

namespace lattice::io {

// A message of the library without its prefix "[json.exception.parse_error.101] ".
std::string_view WithoutJsonTag(std::string_view message);

// Enforces the limits and reports syntax errors. A derived handler overrides the events, and calls Value()
// for every value, Open() and Close() at the ends of objects and arrays.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Errors start with `prefix`.
  JsonEvents(std::string prefix, const JsonLimits& limits) : prefix_(std::move(prefix)), limits_(limits) {}

  // Reads the whole text. Throws Error.
  void Read(std::string_view text);

  bool binary(binary_t&) final { return false; }  // never called for JSON text
  bool parse_error(size_t position, const std::string& token, const nlohmann::detail::exception& error) final;

 protected:
  void Value();
  void Open();
  void Close() { --depth_; }
  // The number of objects and arrays that are open.
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
