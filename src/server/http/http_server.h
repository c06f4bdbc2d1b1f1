// An HTTP/1.1 server: one thread for all connections, a few for the requests.
//
// The thread of the connections never waits for a client: sockets do not block, and every state a connection
// can be in has its deadline. Whatever happens to one connection, no memory left included, ends that one.
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

#include "server/http/connection.h"
#include "server/http/http_counters.h"

namespace lattice::server::http {

struct HttpLimits {
  int64_t connections = 1024;
  int64_t client_connections = 0;      // of one client; 0: as many as there may be
  int64_t waiting_requests = 256;      // read, and waiting for a worker
  int64_t bytes = int64_t{512} << 20;  // of requests and answers on their way, beyond 64 KiB of each
  int workers = 4;
  ConnectionLimits connection;
};

class HttpServer {
 public:
  // All must outlive the object.
  HttpServer(const HttpLimits& limits, Service& service, WorkerPool& workers, ByteBudget& budget,
             HttpCounters& counters);
  // Stops at once.
  ~HttpServer();

  // Listens, on threads of its own. Port 0: any that is free. Returns the port. Throws Error when the address
  // or the threads cannot be had.
  int Start(const std::string& host, int port);
  // Takes no more connections and requests. Those that are being answered go on.
  void Stop();
  // Waits until the last answer is sent or the time is over; then nothing is left open.
  void Join(std::chrono::steady_clock::time_point deadline);

 private:
  using Clock = Connection::Clock;

  void Loop();
  void OnReplies();
  void OnTick();
  void Accept();
  bool AcceptOne();
  void Welcome(int socket, ClientId client);
  // Ends the connection that is missed least, of `client` or of anyone; false when all are being answered.
  bool DropOne(const ClientId* client);
  // The system has no descriptor left for a connection that waits.
  void OutOfDescriptors();
  void Listen(bool on);
  void Update(Connection& connection);
  // Runs `work` of the connection; one that fails ends.
  template <typename Step>
  void Guarded(Connection& connection, const Step& step);
  void Bury();

  const HttpLimits limits_;
  ByteBudget& budget_;
  const int event_, epoll_;
  ReadyReplies ready_;
  const ConnectionWorld world_;
  HttpCounters& counters_;

  int listener_ = -1, spare_ = -1;
  bool listening_ = false;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;  // by socket
  std::unordered_map<ClientId, int64_t> clients_;                     // their connections
  std::vector<int> ended_;                                            // to be buried
  std::atomic<bool> stopping_{false};
  std::atomic<Clock::rep> end_at_;
  std::thread thread_;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_HTTP_SERVER_H_
