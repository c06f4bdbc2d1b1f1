// Text that may come from standard input.
#ifndef LATTICE_CLI_STANDARD_INPUT_H_
#define LATTICE_CLI_STANDARD_INPUT_H_

#include <iostream>
#include <iterator>
#include <string>

namespace lattice::cli {

// `text` itself, or all of standard input where it is "-".
inline std::string TextOrInput(const std::string& text) {
  return text == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : text;
}

}  // namespace lattice::cli

#endif  // LATTICE_CLI_STANDARD_INPUT_H_
