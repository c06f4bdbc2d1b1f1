// Formats status lines, header fields and chunks.
#include "server/http/response.h"

#include <array>
#include <charconv>

#include "base/error.h"

namespace lattice::server::http {

std::string_view StatusText(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Other";
  }
}

std::string HeadText(const Response& response, const Framing& framing) {
  std::string out = StrCat("HTTP/1.1 ", response.status, " ", StatusText(response.status), "\r\n");
  for (const auto& [name, value] : response.fields)
    out.append(name).append(": ").append(value).append("\r\n");
  if (!framing.stream) out += StrCat("Content-Length: ", response.body.size(), "\r\n");
  if (framing.chunked) out += "Transfer-Encoding: chunked\r\n";
  out += framing.close ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n";
  return out;
}

void AppendChunk(std::string_view bytes, std::string& out) {
  if (bytes.empty()) return;
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
  out.append(size.data(), end).append("\r\n").append(bytes).append("\r\n");
}

}  // namespace lattice::server::http
