// Included by what reads or writes the bytes of numbers in files: they are little-endian, and used as they lie in memory.
#ifndef LATTICE_BASE_BYTE_ORDER_H_
#define LATTICE_BASE_BYTE_ORDER_H_

#include <bit>

static_assert(std::endian::native == std::endian::little,
              "Lattice does not run on big-endian machines: its files are little-endian and used in place");

#endif  // LATTICE_BASE_BYTE_ORDER_H_
