// The router: finds the handler of a request, and checks that the client may call it.
#ifndef LATTICE_SERVER_API_ROUTER_H_
#define LATTICE_SERVER_API_ROUTER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "server/api/api.h"
#include "server/engine/scheduler.h"
#include "server/engine/server_metrics.h"
#include "server/http/service.h"

namespace lattice::server {

struct RouterOptions {
  bool local = true;        // serves this machine only, so a Host header with another name is refused
  int64_t body_bytes = 0;   // the largest body
  int64_t state_bytes = 0;  // the largest body of an uploaded state
};

// Decides by the head alone: for a client that is not allowed, no body is read and nothing is computed.
class Router : public http::Service {
 public:
  // All references must outlive the object.
  Router(const Call::Context& context, const Scheduler& scheduler, const Accounts& accounts,
         RouterOptions options);

  std::shared_ptr<http::Exchange> Open(http::Request request,
                                       const std::shared_ptr<http::Reply>& reply) override;
  void Refuse(const http::BadRequest& reason, http::Reply& reply) override;

 private:
  struct Found {
    const Route* route = nullptr;
    std::string id;
  };
  static Found FindRoute(const http::RequestHead& head);

  // These throw ApiError for what is refused.
  const Account& Examine(const http::RequestHead& head, const Found& found) const;
  void ExamineBody(const http::RequestHead& head, bool state) const;
  const Account& CheckSender(const http::RequestHead& head, bool guarded) const;
  int64_t MostBody(bool state) const { return state ? options_.state_bytes : options_.body_bytes; }

  const Call::Context context_;
  const Scheduler& scheduler_;
  const Accounts& accounts_;
  const RouterOptions options_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_ROUTER_H_
