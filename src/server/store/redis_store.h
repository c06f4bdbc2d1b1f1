// Sessions in Redis, for servers on any number of machines.
#ifndef LATTICE_SERVER_STORE_REDIS_STORE_H_
#define LATTICE_SERVER_STORE_REDIS_STORE_H_

#include <memory>

#include "server/store/redis_url.h"
#include "server/store/state_store.h"

namespace lattice::server::store {

// Throws Error when this program was built without hiredis, StoreError when the server cannot be used.
//
// Keys, all beginning with "lattice:": session:ID (a hash: s the stamp, d the value, o the owner), lease:ID
// (the token of the server that has it, with a time to live), index and owner:NAME (sorted sets of ids by the
// time they end). Scripts make every change atomic. Not for Redis Cluster: a script uses keys of several slots.
std::unique_ptr<StateStore> OpenRedis(const RedisAddress& address, const StoreLimits& limits);

}  // namespace lattice::server::store

#endif  // LATTICE_SERVER_STORE_REDIS_STORE_H_
