// One client's connection, with bounds on everything the client decides: bytes, time, and what gets as far as
// the HTTP library.
#ifndef LATTICE_SERVER_CONNECTION_H_
#define LATTICE_SERVER_CONNECTION_H_

#include <httplib.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace lattice::server {

struct ConnectionLimits {
  size_t header_bytes = 16 << 10;
  std::chrono::seconds request{30};  // from a request's first byte to its last
  std::chrono::seconds idle{60};     // between requests
  std::chrono::seconds write{10};    // a client that takes nothing for so long is given up
};

// Used by the thread that serves the connection.
class Connection : public httplib::Stream {
 public:
  // Takes over the socket. `stop` becomes readable when the server stops: idle connections then end.
  Connection(int socket, const ConnectionLimits& limits, int stop);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The one that the calling thread serves, or null.
  static Connection* Current();

  // Waits for a request and holds its whole header. False when there is none: the client has gone or kept
  // still too long, the header was too large (which has been answered), or the server stops.
  bool WaitForRequest();
  // How much of a body may be read. Without it, none.
  void LimitBody(size_t bytes) { readable_ = bytes; }
  // A body was longer than its limit, or did not come in time.
  bool too_large() const { return too_large_; }
  bool too_slow() const { return too_slow_; }
  // What comes behind this request cannot be trusted to be another one.
  void CloseAfterAnswer() { closing_ = true; }
  bool closing() const { return closing_; }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !broken_; }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  // More bytes into the buffer; false when none come before `deadline`.
  bool Fill(Clock::time_point deadline, bool may_stop);
  bool HoldHeader();
  void DropRanges();

  const int socket_, stop_;
  const ConnectionLimits limits_;
  std::string buffer_;
  size_t taken_ = 0;     // of buffer_
  size_t header_ = 0;    // bytes of the header that have not been read yet
  size_t readable_ = 0;  // of the body
  Clock::time_point deadline_;
  bool too_large_ = false, too_slow_ = false, closing_ = false, broken_ = false;
};

// Answers a connection there is no thread for, without reading from it, and closes it.
void RefuseConnection(int socket);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_CONNECTION_H_
