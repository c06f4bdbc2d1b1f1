// What a store of sessions costs: resuming a session that is not in memory, and storing after every request.
#ifndef LATTICE_BENCH_SERVE_STORE_FIGURES_H_
#define LATTICE_BENCH_SERVE_STORE_FIGURES_H_

#include <string>
#include <vector>

#include "serve/figures.h"

namespace lattice::bench {

struct StoreFigures {
  std::string store;  // "memory", "directory" or "redis"
  // Of a request for one token of an idle session: seconds to the token, and to the end, when it is stored.
  double resume_p50 = 0, resume_p99 = 0, stored_p50 = 0;
  std::vector<double> tokens_per_second;  // with `busy` sessions that are never idle; one for each round
  double written_bytes = 0;               // of one session
};

// `redis` is an address, or empty: without Redis. Sessions have read `options.prompt` tokens and are asked for
// `options.tokens`.
std::vector<StoreFigures> MeasureStores(const server::ServedModel& served, const ServeBenchOptions& options,
                                        int64_t busy, const std::string& redis);

// Many sessions in a directory, of which few fit into memory.
struct ManyFigures {
  int64_t sessions = 0, failed = 0;
  double seconds = 0;
  std::vector<int64_t> resident_bytes;  // of the process, after each tenth of the sessions was made
  double stored_bytes = 0;              // of one session
  int64_t resumed = 0,
          wrong = 0;  // at the end, some of all ages: their next token against that of their prompt
};
ManyFigures MeasureManySessions(const server::ServedModel& served, const ServeBenchOptions& options,
                                int64_t count);

// Tokens per second of clients against a server at a port of this machine: streams of `options.tokens`.
LoadFigures MeasurePort(const server::ServedModel& served, const ServeBenchOptions& options, int port,
                        int64_t clients);

}  // namespace lattice::bench

#endif  // LATTICE_BENCH_SERVE_STORE_FIGURES_H_
