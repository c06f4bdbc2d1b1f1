#include "cli/ranks.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "dist/place.h"

namespace lattice::cli {

void AddRankOptions(CLI::App& command, RankFlags& flags) {
  command
      .add_option("--ranks", flags.ranks,
                  "processes on this host that share every step; over many hosts: torchrun (docs/scaling.md)")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--join-timeout", flags.join_seconds, "seconds for all ranks to come together; default: 50")
      ->check(CLI::Range(1.0, 3600.0));
  command
      .add_option("--fault-timeout", flags.patience,
                  "seconds without a sign of life after which a rank counts as lost; default: 7")
      ->check(CLI::Range(2.0, 3600.0));
  command.add_flag("--timeline", flags.timeline,
                   "write what every rank does when to RUN/timeline-<rank>.json, for chrome://tracing");
}

bool RanksTogether(const RankFlags& flags) {
  return flags.ranks > 1 || AsUsage(dist::PlaceFromEnvironment).has_value();
}

bool StartsRanks(const RankFlags& flags) {
  const std::optional<dist::Place> place = AsUsage(dist::PlaceFromEnvironment);
  if (place && flags.ranks > 0 && flags.ranks != place->size) {
    throw UsageError(StrCat("--ranks ", flags.ranks, " does not match WORLD_SIZE=", place->size,
                            "; leave --ranks out under a launcher"));
  }
  return !place && flags.ranks > 1;
}

std::unique_ptr<dist::Group> JoinRanks(const RankFlags& flags) {
  const std::optional<dist::Place> place = AsUsage(dist::PlaceFromEnvironment);
  if (!place) return nullptr;
  const auto lost = [rank = place->rank](const std::string& message) {
    // One write, because all ranks may share a terminal.
    std::cerr << StrCat("lattice: rank ", rank, " ends: ", message, "\n") << std::flush;
    ::_exit(1);
  };
  auto group = std::make_unique<dist::Group>(dist::GroupOptions{
      .place = *place, .join_seconds = flags.join_seconds, .patience = flags.patience, .lost = lost});
  if (flags.timeline) group->RecordTimeline();
  return group;
}

}  // namespace lattice::cli
