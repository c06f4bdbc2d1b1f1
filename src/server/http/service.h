// What an HTTP server does with requests: the interface between the transport and the application.
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

// Who a client is, as far as limits are concerned: its IPv4 address, or the network (/64) of its IPv6
// address.
using ClientId = uint64_t;

struct Request {
  RequestHead head;
  std::string body;
  ClientId client = 0;
};

// One request and its way to an answer. Run is called on a worker once the body is complete. The answer may
// come later and from elsewhere, as long as somebody holds the object; one that ends without an answer ends
// its connection.
class Exchange : public Work {
 public:
  Exchange(Request of, std::shared_ptr<Reply> way_back)
      : request(std::move(of)), reply(std::move(way_back)) {}
  ~Exchange() override { reply->Abort(); }

  Request request;
  int64_t most_body_bytes = 0;
  std::optional<ReservedBytes> body_bytes;  // the body's part of the budget
  const std::shared_ptr<Reply> reply;
};

class Service {
 public:
  virtual ~Service() = default;
  // Called on the thread of the connections when the head of a request is there and nothing of its body has
  // been read; must be quick. Null when the request was refused, by an answer to `reply`.
  virtual std::shared_ptr<Exchange> Open(Request request, const std::shared_ptr<Reply>& reply) = 0;
  // Answers to what cannot be served. On the same thread.
  virtual void Refuse(const BadRequest& reason, Reply& reply) = 0;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_SERVICE_H_
