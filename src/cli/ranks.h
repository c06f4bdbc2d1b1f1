// The processes of a command that several run together: by --ranks, or by the environment of a launcher.
#ifndef LATTICE_CLI_RANKS_H_
#define LATTICE_CLI_RANKS_H_

#include <memory>
#include <optional>

#include "dist/group.h"

namespace CLI {
class App;
}

namespace lattice::cli {

struct RankFlags {
  int ranks = 0;  // 0: as the environment says
  double join_seconds = 50;
  double patience = 7;
  bool timeline = false;
};

void AddRankOptions(CLI::App& command, RankFlags& flags);

// Whether several processes train together.
bool RanksTogether(const RankFlags& flags);

// Whether this process should start the ranks instead of being one: --ranks is given, and no environment.
bool StartsRanks(const RankFlags& flags);

// The group that this process belongs to, joined; null when it trains alone. When a rank is lost later, a line
// that says so is printed and the process ends with code 1.
std::unique_ptr<dist::Group> JoinRanks(const RankFlags& flags);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_RANKS_H_
