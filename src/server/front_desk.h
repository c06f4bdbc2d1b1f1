// What happens to a request before and after its handler: limits, the key, routing, errors, headers.
#ifndef LATTICE_SERVER_FRONT_DESK_H_
#define LATTICE_SERVER_FRONT_DESK_H_

#include <httplib.h>

#include <cstdint>
#include <string>

#include "server/api.h"
#include "server/metrics.h"
#include "server/scheduler.h"

namespace lattice::server {

struct FrontDeskOptions {
  std::string key;    // empty: none
  bool local = true;  // serves this machine only, so names of other machines are suspicious
  int64_t body_bytes = 0;
  int64_t state_bytes = 0;  // of a body that is a state
};

// Used by all connections' threads at once.
class FrontDesk {
 public:
  FrontDesk(Api& api, const Scheduler& scheduler, Metrics& metrics, FrontDeskOptions options);
  // Sets the server's handlers. The desk must outlive it.
  void Install(httplib::Server& server);

 private:
  struct Found {
    const Route* route = nullptr;
    std::string id;
  };
  static Found FindRoute(const httplib::Request& request);

  // Before the body is read; throws ApiError for what is refused.
  void Examine(const httplib::Request& request) const;
  void ExamineBody(const httplib::Request& request, bool state) const;
  void Handle(const httplib::Request& request, httplib::Response& response);
  void ShowPage(const httplib::Request& request, httplib::Response& response) const;
  void Refuse(const ApiError& error, httplib::Response& response) const;
  void Finish(const httplib::Request& request, httplib::Response& response);

  Api& api_;
  const Scheduler& scheduler_;
  Metrics& metrics_;
  const FrontDeskOptions options_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_FRONT_DESK_H_
