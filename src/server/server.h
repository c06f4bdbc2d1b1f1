// The whole server: a model behind HTTP.
//
//   server::Server server(served, options);
//   const int port = server.Start();
//   ...
//   server.Stop();
#ifndef LATTICE_SERVER_SERVER_H_
#define LATTICE_SERVER_SERVER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "server/api/api.h"
#include "server/engine/scheduler.h"
#include "server/engine/served_model.h"
#include "server/engine/server_metrics.h"
#include "server/engine/session_store.h"
#include "server/engine/state_seal.h"
#include "server/http/http_server.h"

namespace lattice::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any free port
  std::string key;  // API key; empty: none, which is only allowed on a loopback address
  int threads = 0;  // of the engine; 0: one per core
  int64_t cache_bytes = int64_t{256} << 20;
  int64_t body_bytes = int64_t{8} << 20;
  std::chrono::seconds grace{10};  // how long Stop waits for requests in progress
  SchedulerLimits scheduler;
  SessionLimits sessions;
  ApiLimits api;
  server::http::HttpLimits http;
  StateSeal seal;
};

// The default limit for a single client of a server that other machines can reach: how many of `all`
// connections, or of `all` places in the scheduler, it may take.
int64_t ClientShare(int64_t all);

// Throws Error for an address that other machines can reach without a key.
void CheckOptions(const ServerOptions& options);

class Server {
 public:
  // Throws what CheckOptions throws.
  Server(ServedModel served, ServerOptions options);
  ~Server();

  // Listens and serves in background threads. Returns the port.
  int Start();
  // Accepts no more requests and finishes those in progress. Returns after the grace time at the latest, plus
  // one second for sending the last answers.
  void Stop();

  const Metrics& metrics() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_SERVER_H_
