// Runs the handler of a request, and turns its result or its exception into an HTTP response.
#include "server/api/call.h"

#include <iostream>
#include <new>
#include <utility>

#include "server/api/api.h"

namespace lattice::server {

http::Response MakeResponse(int status, std::string_view type, std::string body) {
  http::Response response;
  response.status = status;
  response.body = std::move(body);
  response.fields = {{"Content-Type", std::string(type)},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Cross-Origin-Resource-Policy", "same-origin"},
                     {"Cache-Control", "no-store"}};
  return response;
}

http::Response ErrorResponse(const ApiError& error) {
  http::Response response = MakeResponse(error.status(), "application/json", error.Body());
  if (error.status() == 429 || error.status() == 503) response.fields.emplace_back("Retry-After", "1");
  if (error.status() == 401) response.fields.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

http::Response ErrorResponse(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& known) {
    return ErrorResponse(known);
  } catch (const std::bad_alloc&) {
    return ErrorResponse(
        ApiError(503, "the server has no memory left for this request", "", "out_of_memory"));
  } catch (const std::exception& other) {
    std::cerr << "lattice: a request failed: " << other.what() << "\n";
    return ErrorResponse(ApiError(500, "the server failed at this request"));
  }
}

Call::Call(Api& api, Metrics& metrics, const Route& route, std::string id, http::Request of,
           std::shared_ptr<http::Reply> way_back)
    : Exchange(std::move(of), std::move(way_back)),
      api_(api),
      metrics_(metrics),
      route_(route),
      id_(std::move(id)) {}

void Call::Run() noexcept {
  try {
    if (route_.handle != nullptr) {
      (api_.*route_.handle)(*this);
    } else {
      (api_.*route_.show)(*this);
    }
  } catch (...) {
    return SendError(std::current_exception());
  }
  if (!deferred_) Send();
}

void Call::Send() noexcept {
  try {
    const int status = answer_->status;
    const bool sent = reply->Send(*std::exchange(answer_, std::nullopt));
    if (!sent)
      reply->Send(ErrorResponse(ApiError(
          503, "the server has no room for this answer now; try again in a moment", "", "overloaded")));
    metrics_.CountAnswer(route_.label(), sent ? status : 503);
  } catch (...) {
    reply->Abort();
  }
}

void Call::SendError(const std::exception_ptr& error) noexcept {
  try {
    answer_ = ErrorResponse(error);
  } catch (...) {
    return reply->Abort();
  }
  Send();
}

void Call::BeginStream() {
  http::Response response = MakeResponse(200, "text/event-stream", "");
  metrics_.CountAnswer(route_.label(), 200);
  reply->Begin(std::move(response));
}

}  // namespace lattice::server
