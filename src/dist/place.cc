#include "dist/place.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace lattice::dist {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int kMostPort = 65535;

const char* Find(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

std::string Need(const char* name) {
  const char* value = Find(name);
  Check(value != nullptr, "[dist] RANK or WORLD_SIZE is set but ", name,
        " is not; start all ranks by torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  return value;
}

int Number(const char* name, std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  Check(error == std::errc() && end == text.data() + text.size() && value >= least && value <= most,
        "[dist] ", name, "=", text, " is no number from ", least, " to ", most);
  return value;
}

int Optional(const char* name, int otherwise) {
  const char* value = Find(name);
  return value == nullptr ? otherwise : Number(name, value, 0, kMostRanks);
}

}  // namespace

std::optional<Place> PlaceFromEnvironment() {
  if (Find("RANK") == nullptr && Find("WORLD_SIZE") == nullptr) return std::nullopt;
  Place place;
  place.size = Number("WORLD_SIZE", Need("WORLD_SIZE"), 1, kMostRanks);
  place.rank = Number("RANK", Need("RANK"), 0, place.size - 1);
  if (place.size == 1) return std::nullopt;
  place.address = Need("MASTER_ADDR");
  place.port = Number("MASTER_PORT", Need("MASTER_PORT"), 1, kMostPort);
  place.local_rank = Optional("LOCAL_RANK", 0);
  place.local_size = std::max(1, Optional("LOCAL_WORLD_SIZE", 1));
  place.attempt = Optional("TORCHELASTIC_RESTART_COUNT", 0);
  const char* agent = Find("TORCHELASTIC_USE_AGENT_STORE");
  place.store_is_there = agent != nullptr && std::string_view(agent) == "True";
  if (place.rank == 0) place.listener = Optional(kListenerVariable, -1);
  return place;
}

}  // namespace lattice::dist
