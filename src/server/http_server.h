// cpp-httplib's server with connections of our own: bounded in number, bytes and time.
#ifndef LATTICE_SERVER_HTTP_SERVER_H_
#define LATTICE_SERVER_HTTP_SERVER_H_

#include <httplib.h>

#include <cstdint>

#include "server/connection.h"
#include "server/metrics.h"

namespace lattice::server {

struct HttpLimits {
  int64_t connections = 1024;  // a thread each, started when needed
  ConnectionLimits connection;
};

// Handlers are set on the base class, before Bind. Pre-routing sees a request before its body is read and
// says with Connection::LimitBody how long that may be.
class HttpServer : public httplib::Server {
 public:
  HttpServer(const HttpLimits& limits, Metrics& metrics);
  ~HttpServer() override;

  // Port 0: any that is free. Returns the port. Throws Error when the address cannot be had.
  int Bind(const std::string& host, int port);
  // Serves until Shutdown, which may be called from any thread: no new connections, idle ones end, requests
  // that are being served are finished.
  void Serve();
  void Shutdown();

 private:
  bool process_and_close_socket(socket_t socket) override;

  const HttpLimits limits_;
  Metrics& metrics_;
  int stop_event_ = -1;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_HTTP_SERVER_H_
