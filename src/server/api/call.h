// One request on its way through the interface: found its route, waits for its answer.
#ifndef LATTICE_SERVER_API_CALL_H_
#define LATTICE_SERVER_API_CALL_H_

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/engine/api_error.h"
#include "server/engine/server_metrics.h"
#include "server/http/service.h"

namespace lattice::server {

class Api;
struct Route;

// What every answer says, and what an error does. The last may throw std::bad_alloc.
http::Response MakeResponse(int status, std::string_view type, std::string body);
http::Response ErrorResponse(const ApiError& error);
http::Response ErrorResponse(const std::exception_ptr& error);

// Made when the head has come. A handler gives the answer by Answer, and it goes out when the handler has
// returned: nothing that the handler holds, such as a session, is still taken then. Or it calls Defer, and
// whoever holds the call gives the answer later and sends it.
class Call : public http::Exchange, public std::enable_shared_from_this<Call> {
 public:
  // The API and the metrics must outlive the object.
  Call(Api& api, Metrics& metrics, const Route& route, std::string id, http::Request request,
       std::shared_ptr<http::Reply> reply);

  void Run() noexcept override;

  const Route& route() const { return route_; }
  const std::string& id() const { return id_; }  // what stands for {id} in the route
  const std::string& body() const { return request.body; }

  void Answer(http::Response response) { answer_ = std::move(response); }
  void Defer() { deferred_ = true; }
  // Sends what Answer was given.
  void Send() noexcept;
  // Sends what became of an error, or ends the connection when not even that can be made.
  void SendError(const std::exception_ptr& error) noexcept;
  // Begins a stream of events.
  void BeginStream();

 private:
  Api& api_;
  Metrics& metrics_;
  const Route& route_;
  const std::string id_;
  std::optional<http::Response> answer_;
  bool deferred_ = false;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_CALL_H_
