// One API request: its route, its body, and its answer.
#ifndef LATTICE_SERVER_API_CALL_H_
#define LATTICE_SERVER_API_CALL_H_

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/access_log.h"
#include "server/api/accounts.h"
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
  // What calls use; must outlive them.
  struct Context {
    Api& api;
    Metrics& metrics;
    AccessLog& log;
  };
  Call(const Context& context, const Route& route, std::string id, const Account& account,
       http::Request request, std::shared_ptr<http::Reply> reply);
  // Writes the line of the access log.
  ~Call() override;

  void Run() noexcept override;
  // Runs a handler: its answer, or the error it throws, is sent unless it calls Defer.
  void RunHandler(const std::function<void()>& handler) noexcept;

  const Route& route() const { return route_; }
  const std::string& id() const { return id_; }  // the part of the path that matches {id}
  const std::string& body() const { return request.body; }
  const Account& account() const { return account_; }
  const std::string& request_id() const { return entry_.request_id; }
  // The field X-Request-Timeout-Ms: how long the client waits, from the request's arrival; none: as long as the
  // server allows. Throws ApiError (400).
  std::optional<std::chrono::milliseconds> Timeout() const;
  std::chrono::steady_clock::time_point arrived() const { return arrived_; }
  // For the log.
  void NoteTokens(int64_t prompt, int64_t chosen);
  void NoteSession(const std::string& session_id);

  void Answer(http::Response response) { answer_ = std::move(response); }
  void Defer() { deferred_ = true; }
  // Continues the call, once the present handler has returned, by `then` on the workers that may wait for a
  // store. Used in place of an answer.
  void ContinueAtStore(std::function<void()> then) { then_ = std::move(then); }
  // Sends the answer that Answer has set.
  void Send() noexcept;
  // Sends an error, or ends the connection when not even that is possible.
  void SendError(const std::exception_ptr& error) noexcept;
  // Begins a stream of server-sent events.
  void BeginStream();

 private:
  void AddFields(http::Response& response) const;

  const Context context_;
  const Route& route_;
  const std::string id_;
  const Account& account_;
  const std::chrono::steady_clock::time_point arrived_ = std::chrono::steady_clock::now();
  AccessEntry entry_;
  std::function<void()> then_;
  std::optional<http::Response> answer_;
  bool deferred_ = false;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_CALL_H_
