// Finds the route of a request and refuses, by its head alone, whatever is not allowed: wrong host or origin,
// missing key, unknown path, oversized body.
#include "server/api/router.h"

#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "io/hash.h"
#include "server/api/path_pattern.h"
#include "server/api/security.h"
#include "server/engine/api_error.h"

namespace lattice::server {
namespace {

// Longer bodies are not even read while the scheduler is full.
constexpr int64_t kLongBody = 64 << 10;

std::string FieldOf(const http::RequestHead& head, std::string_view name) {
  const std::string* value = head.Field(name);
  return value == nullptr ? "" : *value;
}

// Calls visit(route, id) for each route at the path.
template <typename Visit>
void RoutesAt(const std::string& path, const Visit& visit) {
  for (const std::span<const Route>& routes : {Routes(), PageRoutes()}) {
    for (const Route& route : routes) {
      if (const std::optional<std::string> id = MatchPath(route.path, path)) visit(route, *id);
    }
  }
}

// "GET, DELETE"; empty when there is nothing at the path.
std::string MethodsAt(const std::string& path) {
  std::string methods;
  RoutesAt(path, [&](const Route& route, const std::string&) {
    methods += StrCat(methods.empty() ? "" : ", ", route.method);
  });
  return methods;
}

bool Generates(const Route& route) {
  return route.path.ends_with("/completions") || route.path == "/v1/embeddings";
}

ApiError Busy() { return ApiError(429, "the server is busy; try again in a moment", "", "overloaded"); }

}  // namespace

Router::Router(const Call::Context& context, const Scheduler& scheduler, const Accounts& accounts,
               RouterOptions options)
    : context_(context), scheduler_(scheduler), accounts_(accounts), options_(options) {}

Router::Found Router::FindRoute(const http::RequestHead& head) {
  const std::string_view method = head.method == "HEAD" ? std::string_view("GET") : head.method;
  Found found;
  RoutesAt(head.path, [&](const Route& route, const std::string& id) {
    if (route.method == method) found = {&route, id};
  });
  return found;
}

std::shared_ptr<http::Exchange> Router::Open(http::Request request,
                                             const std::shared_ptr<http::Reply>& reply) {
  Found found = FindRoute(request.head);
  try {
    const Account& account = Examine(request.head, found);
    // The engine is fair between clients: those of named accounts are one client each, wherever they are.
    if (accounts_.named() && found.route->guarded) request.client = io::Fnv1a(account.name);
    auto call = std::make_shared<Call>(context_, *found.route, std::move(found.id), account,
                                       std::move(request), reply);
    call->most_body_bytes = MostBody(call->request.head.method == "PUT");
    return call;
  } catch (const ApiError& error) {
    http::Response response = ErrorResponse(error);
    AccessEntry entry;
    entry.request_id = RequestIdOf(request.head.Field("x-request-id"));
    entry.method = request.head.method;
    entry.route = found.route == nullptr ? "other" : found.route->label();
    entry.status = error.status();
    context_.log.Add(entry);
    response.fields.emplace_back("X-Request-Id", entry.request_id);
    if (error.status() == 405) response.fields.emplace_back("Allow", MethodsAt(request.head.path));
    context_.metrics.CountAnswer(entry.route, response.status);
    reply->Send(std::move(response));
    return nullptr;
  }
}

void Router::Refuse(const http::BadRequest& reason, http::Reply& reply) {
  const char* const code = reason.status == 413 ? "too_large" : reason.status == 503 ? "overloaded" : "";
  reply.Send(ErrorResponse(ApiError(reason.status, reason.message, "", code)));
  context_.metrics.CountAnswer("other", reason.status);
}

const Account& Router::CheckSender(const http::RequestHead& head, bool guarded) const {
  const std::string host = FieldOf(head, "host"), origin = FieldOf(head, "origin");
  if (options_.local && accounts_.open() && !host.empty() && !IsLocalHostHeader(host))
    throw ApiError(403, "this server answers to localhost only; the Host header names another machine");
  if (!origin.empty() && !IsOwnOrigin(origin, host))
    throw ApiError(403, "requests from web pages of other servers are not answered");
  if (!guarded || accounts_.open()) return accounts_.first();
  const Account* const account = accounts_.Find(FieldOf(head, "authorization"));
  if (account == nullptr) {
    throw ApiError(401,
                   "a key is needed: send the header \"Authorization: Bearer KEY\" with the server's key", "",
                   "invalid_api_key");
  }
  return *account;
}

const Account& Router::Examine(const http::RequestHead& head, const Found& found) const {
  const Account& account = CheckSender(head, found.route == nullptr || found.route->guarded);
  if (found.route == nullptr) {
    const std::string allowed = MethodsAt(head.path);
    if (!allowed.empty())
      throw ApiError(405, StrCat("this path is for ", allowed, ", not ", head.method), "",
                     "method_not_allowed");
    throw ApiError(404, "there is nothing at this path; /openapi.json lists what there is", "", "not_found");
  }
  const bool reads = head.method == "POST" || head.method == "PUT";
  if (!reads && head.HasBody()) throw ApiError(400, StrCat(head.method, " takes no body"));
  if (!reads) return account;
  ExamineBody(head, head.method == "PUT");
  if (Generates(*found.route) && head.content_length > kLongBody && scheduler_.Busy()) throw Busy();
  return account;
}

void Router::ExamineBody(const http::RequestHead& head, bool state) const {
  const int64_t most = MostBody(state);
  if (head.content_length > most) {
    throw ApiError(413,
                   StrCat("the body has ", head.content_length, " bytes; at most ", most, " are accepted"),
                   "", "too_large");
  }
  if (head.Field("content-encoding") != nullptr) throw ApiError(415, "compressed bodies are not accepted");
  const std::string type = FieldOf(head, "content-type");
  const std::string_view expected = state ? "application/octet-stream" : "application/json";
  if (head.HasBody() && type.substr(0, type.find(';')) != expected)
    throw ApiError(415, StrCat("the body must be sent with \"Content-Type: ", expected, "\""));
}

}  // namespace lattice::server
