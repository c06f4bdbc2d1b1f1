#include "cli/origin.h"

#include <iostream>

#include "base/error.h"

namespace lattice::cli {

void PrintOrigin(const foreign::Origin& origin) {
  std::cout << "source    " << origin.source << " (" << origin.format << ", " << origin.architecture
            << (origin.name.empty() ? "" : StrCat(", \"", origin.name, "\"")) << ")\n"
            << "tensors   " << origin.weights << "\n"
            << "licence   " << (origin.license.empty() ? "not said" : origin.license);
  for (const std::string& file : origin.licenses) std::cout << ", " << file;
  std::cout << "\n";
  if (origin.context > 0) std::cout << "context   " << origin.context << " tokens\n";
}

}  // namespace lattice::cli
