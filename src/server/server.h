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
  int port = 8080;  // 0: any that is free
  std::string key;  // empty: none, which only a loopback address allows
  int threads = 0;  // of the engine; 0: one per core
  int64_t cache_bytes = int64_t{256} << 20;
  int64_t body_bytes = int64_t{8} << 20;
  std::chrono::seconds grace{10};  // what Stop gives to requests that are being served
  SchedulerLimits scheduler;
  SessionLimits sessions;
  ApiLimits api;
  server::http::HttpLimits http;
  StateSeal seal;
};

// A client of a server that others can reach may have so much of its connections and of its places by
// default.
int64_t ClientShare(int64_t all);

// Throws Error for options that do not go together: an address others can reach, and no key.
void CheckOptions(const ServerOptions& options);

class Server {
 public:
  // Checks the options.
  Server(ServedModel served, ServerOptions options);
  ~Server();

  // Listens and serves, on threads of its own. Returns the port.
  int Start();
  // Takes no more requests and finishes those it has. Returns when the grace time is over at the latest, and
  // a second more for the last answers to be taken.
  void Stop();

  const Metrics& metrics() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_SERVER_H_
