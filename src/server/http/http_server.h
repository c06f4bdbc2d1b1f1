// An HTTP/1.1 server: one event loop thread for all connections, and a few workers for the requests.
//
// The event loop never waits for a client: sockets are non-blocking, and every state of a connection has a
// deadline. A failure of one connection, even for lack of memory, ends only that connection.
#ifndef LATTICE_SERVER_HTTP_HTTP_SERVER_H_
#define LATTICE_SERVER_HTTP_HTTP_SERVER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/memory_return.h"
#include "server/http/connection.h"
#include "server/http/http_counters.h"

namespace lattice::server::http {

struct HttpLimits {
  int64_t connections = 1024;
  int64_t client_connections = 0;      // of one client; 0: no limit
  int64_t waiting_requests = 256;      // completely read and waiting for a worker
  int64_t bytes = int64_t{512} << 20;  // of requests and answers in flight, beyond 64 KiB of each
  int workers = 4;
  ConnectionLimits connection;
};

class HttpServer {
 public:
  // All references must outlive the object.
  HttpServer(const HttpLimits& limits, Service& service, WorkerPool& workers, ByteBudget& budget,
             HttpCounters& counters);
  // Stops at once.
  ~HttpServer();

  // Listens and serves in background threads. Port 0: any free port. Returns the port. Throws Error when the
  // address cannot be bound or a thread cannot be started.
  int Start(const std::string& host, int port);
  // Accepts no more connections and requests. Answers in progress continue.
  void Stop();
  // Waits until the last answer is sent or the deadline has passed, then closes all connections.
  void Join(std::chrono::steady_clock::time_point deadline);

 private:
  using Clock = Connection::Clock;

  void Loop();
  void OnReplies();
  void OnTick();
  void Accept();
  bool AcceptOne();
  void AddConnection(int socket, ClientId client);
  // Closes the connection with the highest eviction priority, of `client` or, if null, of anyone. False when
  // all of them are being answered.
  bool EvictOne(const ClientId* client);
  // accept failed because the process is out of file descriptors or memory.
  void OutOfDescriptors();
  void Listen(bool on);
  void Update(Connection& connection);
  // Runs a step of the connection, which ends if the step throws.
  template <typename Step>
  void Guarded(Connection& connection, const Step& step);
  void RemoveEnded();

  const HttpLimits limits_;
  ByteBudget& budget_;
  const int event_, epoll_;
  ReadyReplies ready_;
  const ConnectionContext context_;
  HttpCounters& counters_;

  int listener_ = -1, spare_ = -1;
  bool listening_ = false;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;  // by socket
  std::unordered_map<ClientId, int64_t> clients_;                     // number of connections by client
  Clock::time_point active_, next_look_;
  MemoryReturn memory_;
  std::vector<int> ended_;  // sockets of connections to remove
  std::atomic<bool> stopping_{false};
  std::atomic<Clock::rep> end_at_;
  std::thread thread_;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_HTTP_SERVER_H_
