// Stands in for redis_store.cc where hiredis was not found.
#include "server/store/redis_store.h"

namespace lattice::server::store {

std::unique_ptr<StateStore> OpenRedis(const RedisAddress&, const StoreLimits&) {
  Fail(
      "[store] this program was built without hiredis, so it cannot use redis://; install libhiredis-dev and "
      "build again (./lattice setup), or name a directory");
}

}  // namespace lattice::server::store
