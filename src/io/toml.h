// TOML files as a flat list of scalar settings, each with its position for error messages.
#ifndef LATTICE_IO_TOML_H_
#define LATTICE_IO_TOML_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lattice::io {

using TomlScalar = std::variant<bool, int64_t, double, std::string>;

struct TomlSetting {
  std::string section;  // "train" for a key under [train]; empty for keys before the first section
  std::string key;
  TomlScalar value;
  int line = 0;  // from 1
  int column = 0;
};

struct TomlSection {
  std::string name;
  int line = 0;
  int column = 0;
};

struct TomlDocument {
  std::vector<TomlSetting> settings;  // in the order of the file
  std::vector<TomlSection> sections;  // also those without keys
};

// Throws Error with source:line:column for a syntax error, a key given twice, and for what this project's
// files never contain: lists, dates and tables inside sections. `source` is what errors call the text.
TomlDocument ParseToml(std::string_view text, std::string_view source);

// A scalar as TOML text that reads back as the same value: shortest round-trip numbers, quoted strings.
std::string FormatToml(const TomlScalar& value);

}  // namespace lattice::io

#endif  // LATTICE_IO_TOML_H_
