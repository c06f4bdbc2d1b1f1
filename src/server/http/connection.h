// One client's connection: bytes to requests and answers to bytes, with a bound on everything the client
// decides.
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
  std::chrono::seconds request{30};    // to the end of its body
  std::chrono::seconds idle{60};       // between requests
  // A client that sends nothing of a body for so long, or takes less than kLeastProgress bytes of an answer,
  // is given up.
  std::chrono::seconds progress{10};
  size_t stream_bytes = 64 << 10;  // of a stream that wait to be taken
  int64_t requests = 10000;        // on one connection

  static constexpr size_t kLeastProgress = 16 << 10;
};

// What the connections of a server share; must outlive them.
struct ConnectionWorld {
  const ConnectionLimits& limits;
  const int64_t& waiting_requests;  // that may wait for a worker
  Service& service;
  WorkerPool& workers;
  ByteBudget& budget;
  ReadyReplies& ready;
};

// Used by the thread of the connections only. Never blocks. Any method may throw std::bad_alloc; the
// connection is to be destroyed then.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  // Takes over the socket, which does not block.
  Connection(const ConnectionWorld& world, int socket, ClientId client);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The system says this of the socket: EPOLLIN, ...
  void OnEvents(uint32_t events);
  // The reply may have something to send.
  void OnReply(const Reply& reply);
  // Looks at the clock.
  void OnTick(Clock::time_point now);
  // Takes no more requests: ends unless an answer is being made or sent.
  void Stop();

  // Events to wait for.
  uint32_t Interest() const;
  bool ended() const { return ended_; }
  int socket() const { return socket_; }
  ClientId client() const { return client_; }

  // How easily the connection is given up when others need its place: the higher the sooner; 0: not at all.
  int Expendable() const;
  Clock::time_point since() const { return since_; }

  uint32_t interest = 0;  // as the system knows it

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

  const ConnectionWorld world_;
  const int socket_;
  const ClientId client_;
  State state_ = State::kHead;
  bool ended_ = false;
  bool hung_up_ = false;        // the client sends nothing more
  bool closing_ = false;        // no request follows the one that is being answered
  Clock::time_point since_;     // when the state was entered; of kHead with bytes, when the first came
  Clock::time_point progress_;  // when bytes last moved

  std::string input_;  // received and not used: a part of a head, or what follows a request
  std::optional<BodyReader> body_;
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<Reply> reply_;
  bool head_only_ = false;

  std::string sending_;
  size_t sent_ = 0;            // of sending_
  std::string after_;          // is sent next
  size_t since_progress_ = 0;  // bytes sent since progress_
  bool last_ = false;          // nothing comes behind sending_
  size_t drained_ = 0;
  int64_t requests_left_;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_CONNECTION_H_
