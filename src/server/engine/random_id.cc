#include "server/engine/random_id.h"

#include <unistd.h>

#include "base/error.h"

namespace lattice::server {

uint64_t RandomBits() {
  uint64_t bits = 0;
  Check(::getentropy(&bits, sizeof(bits)) == 0, "[serve] the system gives no random numbers");
  return bits;
}

std::string RandomId(const std::string& prefix) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string id = prefix;
  for (int half = 0; half < 2; ++half) {
    uint64_t bits = RandomBits();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4) id += kDigits[bits & 15];
  }
  return id;
}

}  // namespace lattice::server
