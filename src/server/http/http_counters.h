// What a server counts about its connections.
#ifndef LATTICE_SERVER_HTTP_HTTP_COUNTERS_H_
#define LATTICE_SERVER_HTTP_HTTP_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace lattice::server::http {

// Any thread.
struct HttpCounters {
  std::atomic<int64_t> connections{0};          // open
  std::atomic<int64_t> refused_connections{0};  // there was no room for them
  std::atomic<int64_t> dropped_connections{0};  // made room for others
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_HTTP_COUNTERS_H_
