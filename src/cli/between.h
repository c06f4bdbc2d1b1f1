// A check of command line options.
#ifndef LATTICE_CLI_BETWEEN_H_
#define LATTICE_CLI_BETWEEN_H_

#include <CLI/CLI.hpp>
#include <string>

#include "base/format.h"

namespace lattice::cli {

// A number in [low, high]. CLI::Range lets NaN through.
inline CLI::Validator Between(double low, double high) {
  const std::string range = "in [" + Short(low, 10) + " - " + Short(high, 10) + "]";
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        const bool within = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
        return within ? std::string() : "Value " + text + " not " + range;
      },
      "FLOAT " + range);
}

}  // namespace lattice::cli

#endif  // LATTICE_CLI_BETWEEN_H_
