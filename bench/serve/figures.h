// The measurements of `./lattice bench serve`: a server and many clients, on loopback.
#ifndef LATTICE_BENCH_SERVE_FIGURES_H_
#define LATTICE_BENCH_SERVE_FIGURES_H_

#include <cstdint>
#include <vector>

#include "server/engine/served_model.h"

namespace lattice::bench {

struct ServeBenchOptions {
  int threads = 0;
  int64_t streams = 200;  // concurrent streams, one request each
  int64_t tokens = 32;    // of each answer
  int64_t prompt = 64;    // tokens of each prompt, all different
  int64_t sessions = 1000;
  int64_t places = 32;      // sequences of the overloaded server: half run, half wait
  double seconds = 5;       // duration of the measurements at full load and at four times that load
  double soak_seconds = 0;  // duration of the soak test, which watches the memory under load
};

// Figures of many concurrent clients.
struct LoadFigures {
  int64_t completed = 0, rejected = 0, failed = 0;
  double seconds = 0;
  double tokens_per_second = 0;
  double first_token_p50 = 0, first_token_p99 = 0;  // seconds from the request to its first token
  double between_tokens_p99 = 0;
  double rejection_p50 = 0, rejection_p99 = 0, rejection_max = 0;  // seconds from a request to its 429
};

struct ServeFigures {
  LoadFigures streams;                      // all streams at once, on a server with room for all
  LoadFigures full;                         // as many clients as places
  LoadFigures overloaded;                   // four times as many; refused clients wait as Retry-After says
  int64_t sessions = 0, session_bytes = 0;  // number of sessions, and bytes of one
  int64_t sessions_grown = 0;               // growth of resident memory by all sessions, in bytes
  std::vector<int64_t> soak;                // resident bytes during the soak test, after its first tenth
};

int64_t ResidentBytes();

ServeFigures MeasureServe(const server::ServedModel& served, const ServeBenchOptions& options);

}  // namespace lattice::bench

#endif  // LATTICE_BENCH_SERVE_FIGURES_H_
