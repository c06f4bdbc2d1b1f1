// Which states that clients send are accepted: those that this server has sealed.
#ifndef LATTICE_SERVER_ENGINE_STATE_SEAL_H_
#define LATTICE_SERVER_ENGINE_STATE_SEAL_H_

#include <string>

#include "server/engine/random_id.h"

namespace lattice::server {

// States leave the server sealed with the key (runtime::Session::Serialize), and come back only with that
// seal unless others are trusted.
struct StateSeal {
  std::string key = RandomId("");  // known to this server only, unless it came from a file
  bool trust_others = false;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_STATE_SEAL_H_
