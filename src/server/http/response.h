// HTTP/1.1 responses and their wire format.
#ifndef LATTICE_SERVER_HTTP_RESPONSE_H_
#define LATTICE_SERVER_HTTP_RESPONSE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lattice::server::http {

struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> fields;  // without Content-Length, Connection and the like
  std::string body;
};

// How an answer is delimited on its connection.
struct Framing {
  bool close = false;    // the connection is closed after the answer
  bool stream = false;   // the length is not known in advance
  bool chunked = false;  // a stream in chunks; otherwise it ends when the connection is closed
};

// The status line and the header fields, up to and including the empty line.
std::string HeadText(const Response& response, const Framing& framing);
// "Not Found"
std::string_view StatusText(int status);
// Appends one chunk. Does nothing for no bytes, because an empty chunk ends the stream.
void AppendChunk(std::string_view bytes, std::string& out);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_RESPONSE_H_
