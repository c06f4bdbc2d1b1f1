// Where a process stands among those that train together, as its launcher says it by environment variables.
#ifndef LATTICE_DIST_PLACE_H_
#define LATTICE_DIST_PLACE_H_

#include <optional>
#include <string>

namespace lattice::dist {

struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;                 // ranks on this host
  std::string address = "127.0.0.1";  // MASTER_ADDR: of the host with rank 0
  int port = 0;                       // MASTER_PORT
  int attempt = 0;                    // how often the launcher has started the ranks again
  bool store_is_there = false;        // the launcher holds the store (torchrun's agent)
  int listener = -1;                  // rank 0 of RunRanks: the store's socket, which listens already
};

// The place that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT give (LOCAL_RANK and torchrun's own variables
// are read as well); nothing when neither RANK nor WORLD_SIZE is set, or the size is 1. Throws Error when one
// of them is missing or no number in range.
std::optional<Place> PlaceFromEnvironment();

// The name of the variable by which RunRanks hands its socket to rank 0.
inline constexpr const char* kListenerVariable = "LATTICE_STORE_SOCKET";

}  // namespace lattice::dist

#endif  // LATTICE_DIST_PLACE_H_
