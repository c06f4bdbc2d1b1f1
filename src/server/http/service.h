// The interface between the HTTP transport and the application that answers its requests.
#ifndef LATTICE_SERVER_HTTP_SERVICE_H_
#define LATTICE_SERVER_HTTP_SERVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/http/byte_budget.h"
#include "server/http/reply.h"
#include "server/http/request_head.h"
#include "server/http/worker_pool.h"

namespace lattice::server::http {

// Identifies a client for the limits per client: its IPv4 address, or the /64 network of its IPv6 address.
using ClientId = uint64_t;

struct Request {
  RequestHead head;
  std::string body;
  ClientId client = 0;
};

// One request and the reply to it. Run is called on a worker once the body is complete. The answer may come
// later and from another thread, as long as somebody holds the object; if it is destroyed without an answer,
// the connection ends.
class Exchange : public Work {
 public:
  Exchange(Request of, std::shared_ptr<Reply> way_back)
      : request(std::move(of)), reply(std::move(way_back)) {}
  ~Exchange() override { reply->Abort(); }

  Request request;
  int64_t most_body_bytes = 0;
  std::optional<ReservedBytes> body_bytes;  // the body's reservation in the byte budget
  const std::shared_ptr<Reply> reply;
};

class Service {
 public:
  virtual ~Service() = default;
  // Called on the event loop's thread when the head of a request has been read and its body has not; must be
  // quick. Returns null if it refused the request with an answer to `reply`.
  virtual std::shared_ptr<Exchange> Open(Request request, const std::shared_ptr<Reply>& reply) = 0;
  // Answers a request that the transport refuses. Called on the same thread.
  virtual void Refuse(const BadRequest& reason, Reply& reply) = 0;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_SERVICE_H_
