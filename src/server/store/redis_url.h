// Where a Redis server is, and how to log in there.
#ifndef LATTICE_SERVER_STORE_REDIS_URL_H_
#define LATTICE_SERVER_STORE_REDIS_URL_H_

#include <string>

namespace lattice::server::store {

struct RedisAddress {
  std::string host;
  int port = 6379;
  int database = 0;
  bool tls = false;
  std::string user, password;  // never part of the address on a command line, which other users can see
  std::string ca_file;         // certificates to trust; empty: the system's
};

// redis://host[:port][/db] or rediss:// (TLS). Throws Error that says what is wrong with it.
RedisAddress ParseRedisUrl(const std::string& url);

}  // namespace lattice::server::store

#endif  // LATTICE_SERVER_STORE_REDIS_URL_H_
