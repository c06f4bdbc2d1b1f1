// Unguessable ids.
#ifndef LATTICE_SERVER_ENGINE_RANDOM_ID_H_
#define LATTICE_SERVER_ENGINE_RANDOM_ID_H_

#include <cstdint>
#include <string>

namespace lattice::server {

// 64 bits from the system's generator.
uint64_t RandomBits();
// `prefix` and 32 hexadecimal digits, 128 bits from the system's generator.
std::string RandomId(const std::string& prefix);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_RANDOM_ID_H_
