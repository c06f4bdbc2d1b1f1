// Answers as HTTP/1.1 writes them.
#ifndef LATTICE_SERVER_HTTP_RESPONSE_H_
#define LATTICE_SERVER_HTTP_RESPONSE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lattice::server::http {

struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> fields;  // without those about length and connection
  std::string body;
};

// How the answer goes over this connection.
struct Framing {
  bool close = false;    // the connection ends behind the answer
  bool stream = false;   // the length is not known
  bool chunked = false;  // a stream in chunks; else it ends with the connection
};

// The status line and the fields, with the empty line behind them.
std::string HeadText(const Response& response, const Framing& framing);
// "Not Found"
std::string_view StatusText(int status);
// One chunk of a stream. Nothing for no bytes, which would end it.
void AppendChunk(std::string_view bytes, std::string& out);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_RESPONSE_H_
