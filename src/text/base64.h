// Base64 encoding.
#ifndef LATTICE_TEXT_BASE64_H_
#define LATTICE_TEXT_BASE64_H_

#include <cstdint>
#include <span>
#include <string>

namespace lattice::text {

// RFC 4648, with padding.
std::string Base64(std::span<const uint8_t> bytes);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_BASE64_H_
