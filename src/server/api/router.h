// What happens to a request before its handler: who asks, what for, and whether that is allowed.
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
  std::string key;    // empty: none
  bool local = true;  // serves this machine only, so names of other machines are suspicious
  int64_t body_bytes = 0;
  int64_t state_bytes = 0;  // of a body that is a state
};

// Everything is decided by the head: nothing of a body is read, and nothing is computed, for somebody who may
// not ask.
class Router : public http::Service {
 public:
  // All must outlive the object.
  Router(Api& api, const Scheduler& scheduler, Metrics& metrics, RouterOptions options);

  std::shared_ptr<http::Exchange> Open(http::Request request,
                                       const std::shared_ptr<http::Reply>& reply) override;
  void Refuse(const http::BadRequest& reason, http::Reply& reply) override;

 private:
  struct Found {
    const Route* route = nullptr;
    std::string id;
  };
  static Found FindRoute(const http::RequestHead& head);

  // Throw ApiError for what is refused.
  void Examine(const http::RequestHead& head, const Found& found) const;
  void ExamineBody(const http::RequestHead& head, bool state) const;
  void CheckSender(const http::RequestHead& head, bool guarded) const;
  int64_t MostBody(bool state) const { return state ? options_.state_bytes : options_.body_bytes; }

  Api& api_;
  const Scheduler& scheduler_;
  Metrics& metrics_;
  const RouterOptions options_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_ROUTER_H_
