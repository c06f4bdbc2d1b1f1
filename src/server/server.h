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
#include <vector>

#include "server/api/accounts.h"
#include "server/api/api.h"
#include "server/engine/scheduler.h"
#include "server/engine/served_model.h"
#include "server/engine/server_metrics.h"
#include "server/engine/session_store.h"
#include "server/engine/state_seal.h"
#include "server/http/http_server.h"
#include "server/store/state_store.h"

namespace lattice::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                // 0: any free port
  std::string key;                // API key; empty: none, which is only allowed on a loopback address
  std::vector<Account> accounts;  // instead of `key`: several keys, with quotas
  std::string access_log;         // a file, "-" for standard error; empty: none
  std::shared_ptr<store::StateStore> store;  // of sessions; null: memory only
  std::chrono::milliseconds lease{10'000};   // as the store counts it
  Durability durability;
  bool compress = false;  // what is stored
  int store_workers = 8;  // requests that wait for the store at the same time
  int threads = 0;        // of the engine; 0: one per core
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
  // From now on /health/ready says that the server is draining; everything else goes on.
  void StartDraining();
  // Accepts no more requests, finishes those in progress and stores their sessions. Returns after the grace time at the latest, plus
  // one second for sending the last answers.
  void Stop();

  const Metrics& metrics() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_SERVER_H_
