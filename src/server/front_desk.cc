#include "server/front_desk.h"

#include <algorithm>
#include <iostream>
#include <new>

#include "base/error.h"
#include "server/api_error.h"
#include "server/connection.h"
#include "server/embedded_files.h"
#include "server/security.h"

namespace lattice::server {
namespace {

constexpr size_t kLongestPath = 512;
// A body so long is not even read while the queue is full.
constexpr uint64_t kLongBody = 64 << 10;

constexpr std::string_view kPagePrefix = "/page/";

bool IsPage(const std::string& path) { return path == "/" || path.starts_with(kPagePrefix); }

bool HasBody(const httplib::Request& request) {
  return request.has_header("Transfer-Encoding") || request.get_header_value("Content-Length") != "0";
}

// What stands in `path` for {id} in `pattern`; nothing when they do not match.
std::optional<std::string> Match(std::string_view pattern, std::string_view path) {
  const size_t open = pattern.find("{id}");
  if (open == std::string_view::npos) return pattern == path ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, open), after = pattern.substr(open + 4);
  if (!path.starts_with(before) || !path.ends_with(after) || path.size() <= before.size() + after.size())
    return std::nullopt;
  const std::string_view id = path.substr(before.size(), path.size() - before.size() - after.size());
  return id.find('/') == std::string_view::npos ? std::optional<std::string>(id) : std::nullopt;
}

// "GET, DELETE"; empty when there is nothing at the path.
std::string MethodsAt(const std::string& path) {
  std::string methods = IsPage(path) ? "GET" : "";
  for (const Route& route : Routes()) {
    if (Match(route.path, path)) methods += StrCat(methods.empty() ? "" : ", ", route.method);
  }
  return methods;
}

std::string_view MethodOf(const httplib::Request& request) {
  return request.method == "HEAD" ? std::string_view("GET") : std::string_view(request.method);
}

bool Generates(const Route& route) { return route.path.ends_with("/completions"); }

ApiError Busy() { return ApiError(429, "the server is busy; try again in a moment", "", "overloaded"); }

}  // namespace

FrontDesk::FrontDesk(Api& api, const Scheduler& scheduler, Metrics& metrics, FrontDeskOptions options)
    : api_(api), scheduler_(scheduler), metrics_(metrics), options_(std::move(options)) {}

void FrontDesk::Install(httplib::Server& server) {
  using httplib::Request, httplib::Response;
  using HandlerResponse = httplib::Server::HandlerResponse;
  server.set_payload_max_length(static_cast<size_t>(std::max(options_.body_bytes, options_.state_bytes)));
  server.set_pre_routing_handler([this](const Request& request, Response& response) {
    try {
      Examine(request);
    } catch (const ApiError& error) {
      if (HasBody(request)) Connection::Current()->CloseAfterAnswer();
      Refuse(error, response);
      return HandlerResponse::Handled;
    }
    return HandlerResponse::Unhandled;
  });
  const auto handle = [this](const Request& request, Response& response) { Handle(request, response); };
  server.Get(".*", handle).Post(".*", handle).Put(".*", handle).Delete(".*", handle);
  // The library refuses by itself what is no request, and bodies that end early.
  const auto refused = [this](const Request&, Response& response) {
    if (!response.body.empty()) return HandlerResponse::Unhandled;
    Connection& connection = *Connection::Current();
    connection.CloseAfterAnswer();
    const bool large = connection.too_large() || response.status == 413;
    Refuse(large ? ApiError(413, "the body is longer than this server accepts", "", "too_large")
           : connection.too_slow()
               ? ApiError(408, "the request did not come in time")
               : ApiError(response.status, "this is not a request of HTTP/1.1 that can be read"),
           response);
    return HandlerResponse::Handled;
  };
  server.set_error_handler(httplib::Server::HandlerWithResponse(refused));
  server.set_post_routing_handler(
      [this](const Request& request, Response& response) { Finish(request, response); });
}

FrontDesk::Found FrontDesk::FindRoute(const httplib::Request& request) {
  for (const Route& route : Routes()) {
    const std::optional<std::string> id = Match(route.path, request.path);
    if (id && route.method == MethodOf(request)) return {&route, *id};
  }
  const std::string allowed = MethodsAt(request.path);
  if (!allowed.empty())
    throw ApiError(405, StrCat("this path is for ", allowed, ", not ", request.method), "",
                   "method_not_allowed");
  throw ApiError(404, "there is nothing at this path; /openapi.json lists what there is", "", "not_found");
}

void FrontDesk::Examine(const httplib::Request& request) const {
  if (request.path.size() > kLongestPath) throw ApiError(414, "the path is too long");
  const std::string host = request.get_header_value("Host"), origin = request.get_header_value("Origin");
  if (options_.local && options_.key.empty() && !host.empty() && !IsLocalHostHeader(host))
    throw ApiError(403, "this server answers to localhost only; the Host header names another machine");
  if (!origin.empty() && !IsOwnOrigin(origin, host))
    throw ApiError(403, "requests from web pages of other servers are not answered");
  const bool page = MethodOf(request) == "GET" && IsPage(request.path);
  const Found found = page ? Found{} : FindRoute(request);
  const bool guarded = !page && found.route->guarded;
  if (guarded && !options_.key.empty() && !HasKey(request.get_header_value("Authorization"), options_.key)) {
    throw ApiError(401,
                   "a key is needed: send the header \"Authorization: Bearer KEY\" with the server's key", "",
                   "invalid_api_key");
  }
  const bool reads = request.method == "POST" || request.method == "PUT";
  if (!reads && HasBody(request)) throw ApiError(400, StrCat(request.method, " takes no body"));
  if (!reads) return;
  ExamineBody(request, request.method == "PUT");
  const uint64_t length = std::strtoull(request.get_header_value("Content-Length").c_str(), nullptr, 10);
  if (Generates(*found.route) && length > kLongBody && scheduler_.Busy()) throw Busy();
}

void FrontDesk::ExamineBody(const httplib::Request& request, bool state) const {
  const bool chunked = request.has_header("Transfer-Encoding");
  const size_t lengths = request.get_header_value_count("Content-Length");
  const std::string length = request.get_header_value("Content-Length");
  const bool digits =
      !length.empty() && length.size() < 19 && length.find_first_not_of("0123456789") == std::string::npos;
  if (chunked ? lengths > 0 || request.get_header_value("Transfer-Encoding") != "chunked"
              : lengths != 1 || !digits)
    throw ApiError(
        400, "the length of the body is not clear: send one Content-Length, or Transfer-Encoding: chunked");
  const int64_t most = state ? options_.state_bytes : options_.body_bytes;
  if (!chunked && std::stoll(length) > most) {
    throw ApiError(413, StrCat("the body has ", length, " bytes; at most ", most, " are accepted"), "",
                   "too_large");
  }
  if (request.has_header("Content-Encoding")) throw ApiError(415, "compressed bodies are not accepted");
  const std::string type = request.get_header_value("Content-Type");
  const std::string_view expected = state ? "application/octet-stream" : "application/json";
  if (HasBody(request) && type.substr(0, type.find(';')) != expected)
    throw ApiError(415, StrCat("the body must be sent with \"Content-Type: ", expected, "\""));
  Connection::Current()->LimitBody(static_cast<size_t>(most));
}

void FrontDesk::Handle(const httplib::Request& request, httplib::Response& response) {
  try {
    if (MethodOf(request) == "GET" && IsPage(request.path)) return ShowPage(request, response);
    const Found found = FindRoute(request);
    if (Generates(*found.route) && scheduler_.Busy()) {
      ++metrics_.rejected;
      throw Busy();
    }
    const Call call = {request, response, found.id};
    if (found.route->handle != nullptr) {
      (api_.*found.route->handle)(call);
    } else {
      (api_.*found.route->show)(call);
    }
  } catch (const ApiError& error) {
    Refuse(error, response);
  } catch (const std::bad_alloc&) {
    Refuse(ApiError(503, "the server has no memory left for this request", "", "out_of_memory"), response);
  } catch (const std::exception& error) {
    std::cerr << "lattice: " << request.method << " " << request.path << ": " << error.what() << "\n";
    Refuse(ApiError(500, "the server failed at this request"), response);
  }
}

void FrontDesk::ShowPage(const httplib::Request& request, httplib::Response& response) const {
  const std::string name = request.path == "/" ? "index.html" : request.path.substr(kPagePrefix.size());
  const EmbeddedFile* file = FindEmbedded(name);
  if (file == nullptr) throw ApiError(404, "the page has no such file", "", "not_found");
  response.set_header("Content-Security-Policy",
                      "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
                      "form-action 'self'; frame-ancestors 'none'");
  response.set_header("X-Frame-Options", "DENY");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Opener-Policy", "same-origin");
  response.set_content(std::string(file->content), std::string(ContentType(name)));
}

void FrontDesk::Refuse(const ApiError& error, httplib::Response& response) const {
  response.status = error.status();
  if (error.status() == 429 || error.status() == 503) response.set_header("Retry-After", "1");
  if (error.status() == 401) response.set_header("WWW-Authenticate", "Bearer");
  response.set_content(error.Body(), "application/json");
}

void FrontDesk::Finish(const httplib::Request& request, httplib::Response& response) {
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  if (!response.has_header("Cache-Control")) response.set_header("Cache-Control", "no-store");
  if (response.status == 405) response.set_header("Allow", MethodsAt(request.path));
  if (Connection::Current()->closing()) {
    response.headers.erase("Keep-Alive");
    response.headers.erase("Connection");
    response.set_header("Connection", "close");
  }
  std::string_view label = IsPage(request.path) ? "page" : "other";
  for (const Route& route : Routes()) {
    if (route.method == MethodOf(request) && Match(route.path, request.path)) label = route.path;
  }
  metrics_.CountAnswer(std::string(label), response.status);
}

}  // namespace lattice::server
