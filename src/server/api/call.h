// One API request: its route, its body, and its answer.
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

// Responses with the headers that all answers have. The last may throw std::bad_alloc.
http::Response MakeResponse(int status, std::string_view type, std::string body);
http::Response ErrorResponse(const ApiError& error);
http::Response ErrorResponse(const std::exception_ptr& error);

// Created when the head has been parsed. A handler sets the answer with Answer; it is sent after the handler
// has returned, when everything that the handler held, such as a session, is released. Alternatively the
// handler calls Defer, and whoever holds the call sets and sends the answer later.
class Call : public http::Exchange, public std::enable_shared_from_this<Call> {
 public:
  // The API and the metrics must outlive the object.
  Call(Api& api, Metrics& metrics, const Route& route, std::string id, http::Request request,
       std::shared_ptr<http::Reply> reply);

  void Run() noexcept override;

  const Route& route() const { return route_; }
  const std::string& id() const { return id_; }  // the part of the path that matches {id}
  const std::string& body() const { return request.body; }

  void Answer(http::Response response) { answer_ = std::move(response); }
  void Defer() { deferred_ = true; }
  // Sends the answer that Answer has set.
  void Send() noexcept;
  // Sends an error, or ends the connection when not even that is possible.
  void SendError(const std::exception_ptr& error) noexcept;
  // Begins a stream of server-sent events.
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
