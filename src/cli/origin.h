// Where an imported model came from, for people.
#ifndef LATTICE_CLI_ORIGIN_H_
#define LATTICE_CLI_ORIGIN_H_

#include "foreign/import.h"

namespace lattice::cli {

// Prints source, licence and what the weights were.
void PrintOrigin(const foreign::Origin& origin);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_ORIGIN_H_
