// A connection to a server, plain or by TLS, on which nothing waits longer than a deadline.
#ifndef LATTICE_SERVER_STORE_REDIS_STREAM_H_
#define LATTICE_SERVER_STORE_REDIS_STREAM_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "server/store/redis_url.h"

namespace lattice::server::store {

// Used by one thread at a time. All methods throw StoreError (kUnavailable).
class RedisStream {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  RedisStream(const RedisAddress& address, Deadline deadline);
  ~RedisStream();
  RedisStream(const RedisStream&) = delete;
  RedisStream& operator=(const RedisStream&) = delete;

  void Send(std::string_view bytes, Deadline deadline);
  // Waits for bytes and returns how many came; never 0.
  size_t Receive(std::span<char> into, Deadline deadline);

 private:
  struct Tls;
  void Connect(const RedisAddress& address, Deadline deadline);
  void StartTls(const RedisAddress& address, Deadline deadline);
  // Waits until the socket can be read or written.
  void Wait(short events, Deadline deadline) const;

  int socket_ = -1;
  std::unique_ptr<Tls> tls_;  // null: plain
};

}  // namespace lattice::server::store

#endif  // LATTICE_SERVER_STORE_REDIS_STREAM_H_
