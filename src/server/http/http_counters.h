// Counters of a server's connections.
#ifndef LATTICE_SERVER_HTTP_HTTP_COUNTERS_H_
#define LATTICE_SERVER_HTTP_HTTP_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace lattice::server::http {

// May be used from any thread.
struct HttpCounters {
  std::atomic<int64_t> connections{0};          // currently open
  std::atomic<int64_t> refused_connections{0};  // refused because the server was full
  std::atomic<int64_t> dropped_connections{0};  // closed to make room for others
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_HTTP_COUNTERS_H_
