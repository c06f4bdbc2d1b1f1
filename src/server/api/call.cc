// Runs the handler of a request, and turns its result or its exception into an HTTP response.
#include "server/api/call.h"

#include <charconv>
#include <iostream>
#include <new>
#include <utility>

#include "io/hash.h"
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
  const int status = error.status();
  if (status == 409 || status == 429 || status == 503)
    response.fields.emplace_back("Retry-After", std::to_string(error.retry_seconds()));
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

namespace {

// Continues a call on another pool of workers.
class Continuation : public http::Work {
 public:
  Continuation(std::shared_ptr<Call> call, std::function<void()> then)
      : call_(std::move(call)), then_(std::move(then)) {}
  void Run() noexcept override { call_->RunHandler(then_); }

 private:
  const std::shared_ptr<Call> call_;
  const std::function<void()> then_;
};

}  // namespace

Call::Call(const Context& context, const Route& route, std::string id, const Account& account,
           http::Request of, std::shared_ptr<http::Reply> way_back)
    : Exchange(std::move(of), std::move(way_back)),
      context_(context),
      route_(route),
      id_(std::move(id)),
      account_(account) {
  entry_.request_id = RequestIdOf(request.head.Field("x-request-id"));
  entry_.account = account.name;
  entry_.method = request.head.method;
  entry_.route = route.label();
  if (route.path.starts_with("/v1/sessions/")) NoteSession(id_);
}

Call::~Call() {
  entry_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - arrived_).count();
  context_.log.Add(entry_);
}

std::optional<std::chrono::milliseconds> Call::Timeout() const {
  const std::string* const text = request.head.Field("x-request-timeout-ms");
  if (text == nullptr) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 1 || value > 86'400'000)
    throw ApiError(400, "X-Request-Timeout-Ms is not a number from 1 to 86400000", "X-Request-Timeout-Ms");
  return std::chrono::milliseconds(value);
}

void Call::NoteTokens(int64_t prompt, int64_t chosen) {
  entry_.prompt_tokens += prompt;
  entry_.chosen_tokens += chosen;
}

void Call::NoteSession(const std::string& session_id) {
  if (context_.log.on()) entry_.session = io::Sha256Hex(session_id).substr(0, 12);
}

void Call::AddFields(http::Response& response) const {
  response.fields.emplace_back("X-Request-Id", entry_.request_id);
}

void Call::Run() noexcept {
  RunHandler([this] { context_.api.Handle(*this); });
}

void Call::RunHandler(const std::function<void()>& handler) noexcept {
  try {
    handler();
    if (then_) {
      // Another thread has the call from here on.
      const auto work = std::make_shared<Continuation>(shared_from_this(), std::exchange(then_, nullptr));
      return context_.api.PostToStore(work);
    }
  } catch (...) {
    return SendError(std::current_exception());
  }
  if (!deferred_) Send();
}

void Call::Send() noexcept {
  try {
    const int status = answer_->status;
    AddFields(*answer_);
    const bool sent = reply->Send(*std::exchange(answer_, std::nullopt));
    if (!sent)
      reply->Send(ErrorResponse(ApiError(
          503, "the server has no room for this answer now; try again in a moment", "", "overloaded")));
    entry_.status = sent ? status : 503;
    context_.metrics.CountAnswer(route_.label(), entry_.status);
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
  AddFields(response);
  entry_.status = 200;
  context_.metrics.CountAnswer(route_.label(), 200);
  reply->Begin(std::move(response));
}

}  // namespace lattice::server
