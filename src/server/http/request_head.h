// A strict parser of HTTP/1.1 request heads: anything that two parsers could read differently is refused,
// which rules out request smuggling.
#ifndef LATTICE_SERVER_HTTP_REQUEST_HEAD_H_
#define LATTICE_SERVER_HTTP_REQUEST_HEAD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lattice::server::http {

struct HeadLimits {
  size_t bytes = 16 << 10;  // including the empty line at the end
  size_t fields = 100;
  size_t path_bytes = 512;
  size_t target_bytes = 2048;  // path and query
};

struct RequestHead {
  std::string method;                                       // a token, as sent
  std::string path;                                         // percent-decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;   // percent-decoded
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case, values as sent
  int minor_version = 1;                                    // of HTTP/1
  bool chunked = false;                                     // Transfer-Encoding: chunked
  int64_t content_length = 0;                               // of a body that is not chunked

  bool HasBody() const { return chunked || content_length > 0; }
  // The value of a header field, or of a query parameter; null when there is none.
  const std::string* Field(std::string_view lower_case_name) const;
  const std::string* Query(std::string_view name) const;
  // Whether the client wants to keep the connection open.
  bool KeepAlive() const;
};

// Why a request is refused: the status and the message of the answer.
struct BadRequest {
  int status = 400;
  const char* message = "";
};

// Parses the head at the beginning of `bytes`, which may end anywhere. Returns the head and its length; or
// what is wrong with it, as soon as that is certain; or nothing while more bytes are needed.
//
// Lines end with CR LF and nothing else; there are no continued lines, no space before a colon, no control
// characters, no second Host, Content-Length, Transfer-Encoding, Content-Type, Authorization or Origin. The
// target is a path. A body has one Content-Length or "Transfer-Encoding: chunked", never both.
struct ParsedHead {
  RequestHead head;
  size_t bytes = 0;
};
std::variant<std::monostate, ParsedHead, BadRequest> ParseHead(std::string_view bytes,
                                                               const HeadLimits& limits);

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_REQUEST_HEAD_H_
