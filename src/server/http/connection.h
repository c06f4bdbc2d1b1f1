// One connection: parses requests from received bytes and sends answers, with a limit on everything that the
// client controls.
#ifndef LATTICE_SERVER_HTTP_CONNECTION_H_
#define LATTICE_SERVER_HTTP_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/body_reader.h"
#include "server/http/service.h"

namespace lattice::server::http {

struct ConnectionLimits {
  HeadLimits head;
  std::chrono::seconds head_time{10};  // from a request's first byte to the end of its head
  std::chrono::seconds request{30};    // from a request's first byte to the end of its body
  std::chrono::seconds idle{60};       // between requests
  // A connection is dropped when for so long the client sends nothing of a body, or takes less than
  // kLeastProgress bytes of an answer.
  std::chrono::seconds progress{10};
  size_t stream_bytes = 64 << 10;  // unsent bytes of a stream at which its producer must pause
  int64_t requests = 10000;        // on one connection

  static constexpr size_t kLeastProgress = 16 << 10;
};

// What all connections of a server share; must outlive them.
struct ConnectionContext {
  const ConnectionLimits& limits;
  const int64_t& waiting_requests;  // how many requests may wait for a worker
  Service& service;
  WorkerPool& workers;
  ByteBudget& budget;
  ReadyReplies& ready;
};

// Used by the event loop's thread only. Never blocks. Any method may throw std::bad_alloc; the connection
// must be destroyed then.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  // Owns the socket, which must be non-blocking.
  Connection(const ConnectionContext& context, int socket, ClientId client);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Handles epoll events of the socket: EPOLLIN, ...
  void OnEvents(uint32_t events);
  // Handles a reply that may have something to send.
  void OnReply(const Reply& reply);
  // Checks the deadlines.
  void OnTick(Clock::time_point now);
  // Accepts no more requests: ends at once, or after the answer in progress.
  void Stop();

  // The epoll events to wait for.
  uint32_t Interest() const;
  bool ended() const { return ended_; }
  int socket() const { return socket_; }
  ClientId client() const { return client_; }

  // Connections with a higher priority are closed first when another needs a place; 0: never.
  int EvictionPriority() const;
  Clock::time_point since() const { return since_; }

  uint32_t interest = 0;  // as registered with epoll

 private:
  enum class State { kHead, kBody, kAnswer, kLinger };

  void Receive();
  void ReadHead();
  void ReadBody(std::string_view bytes);
  void Open(RequestHead head);
  void Dispatch();
  void Refuse(const BadRequest& reason);
  void NewReply(const RequestHead* head);
  void Flush();
  bool TakePiece();
  void EndAnswer();
  void Enter(State state);
  void End() { ended_ = true; }

  const ConnectionContext context_;
  const int socket_;
  const ClientId client_;
  State state_ = State::kHead;
  bool ended_ = false;
  bool hung_up_ = false;        // the client has closed its sending side
  bool closing_ = false;        // the connection ends after the current answer
  Clock::time_point since_;     // when the state was entered; in kHead, when the first byte came, if any has
  Clock::time_point progress_;  // when bytes were last transferred

  std::string input_;  // received but not parsed: a part of a head, or the beginning of the next request
  std::optional<BodyReader> body_;
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<Reply> reply_;
  bool head_only_ = false;

  std::string sending_;
  size_t sent_ = 0;            // bytes of sending_ that have been sent
  std::string after_;          // sent after sending_
  size_t since_progress_ = 0;  // bytes sent since progress_
  bool last_ = false;          // the answer ends with sending_ and after_
  size_t drained_ = 0;
  int64_t requests_left_;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_CONNECTION_H_
