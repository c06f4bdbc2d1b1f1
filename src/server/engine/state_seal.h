// Authentication of the states that clients upload: only those that this server has sealed are accepted.
#ifndef LATTICE_SERVER_ENGINE_STATE_SEAL_H_
#define LATTICE_SERVER_ENGINE_STATE_SEAL_H_

#include <string>

#include "server/engine/random_id.h"

namespace lattice::server {

// A seal is a message authentication code (runtime::Session::Serialize). Downloaded states carry one, and
// uploads without it are refused unless `trust_others`.
struct StateSeal {
  std::string key = RandomId("");  // known to this server only, unless it came from a file
  bool trust_others = false;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_STATE_SEAL_H_
