// When a session's state goes from memory to the store.
#ifndef LATTICE_SERVER_ENGINE_DURABILITY_H_
#define LATTICE_SERVER_ENGINE_DURABILITY_H_

#include <cstdint>
#include <string>

namespace lattice::server {

// request: before the end of each answer, so that what was answered is stored. tokens: whenever the session has
// read `tokens` more, also in the middle of an answer. end: when it leaves memory or the server stops. With the
// last two the server keeps the lease of a session it has not stored yet.
struct Durability {
  enum class Level { kRequest, kTokens, kEnd };
  Level level = Level::kRequest;
  int64_t tokens = 0;
};

// "request", "tokens=N" or "end". Throws Error.
Durability ParseDurability(const std::string& text);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_DURABILITY_H_
