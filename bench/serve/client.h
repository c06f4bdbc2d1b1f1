// One client of a server on this machine, with a clock.
#ifndef LATTICE_BENCH_SERVE_CLIENT_H_
#define LATTICE_BENCH_SERVE_CLIENT_H_

#include <string>
#include <vector>

namespace lattice::bench {

struct StreamTimes {
  int status = 0;            // 0: the connection failed or ended early
  double answered = 0;       // seconds to the first byte of the answer
  double first = 0;          // to the first token
  std::vector<double> gaps;  // between tokens
};

// POSTs `body` to /v1/completions and reads the whole stream.
StreamTimes RunStream(int port, const std::string& body);

// One request; the body of a 2xx answer, else empty.
std::string Ask(int port, const std::string& method, const std::string& path, const std::string& body);

}  // namespace lattice::bench

#endif  // LATTICE_BENCH_SERVE_CLIENT_H_
