// An HTTP client for a server on this machine that measures times.
#ifndef LATTICE_BENCH_SERVE_CLIENT_H_
#define LATTICE_BENCH_SERVE_CLIENT_H_

#include <string>
#include <vector>

namespace lattice::bench {

struct StreamTimes {
  int status = 0;            // 0: the connection failed or ended early
  double answered = 0;       // seconds to the first byte of the answer
  double first = 0;          // seconds to the first token
  std::vector<double> gaps;  // seconds between tokens
};

// POSTs `body` to /v1/completions and reads the whole stream.
StreamTimes RunStream(int port, const std::string& body);

// Sends one request. Returns the body of a 2xx answer, else an empty string.
std::string Ask(int port, const std::string& method, const std::string& path, const std::string& body);

}  // namespace lattice::bench

#endif  // LATTICE_BENCH_SERVE_CLIENT_H_
