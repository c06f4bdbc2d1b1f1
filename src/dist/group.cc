// Joining, agreeing and leaving.
#include "dist/group.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "dist/collectives.h"
#include "dist/group_parts.h"
#include "dist/network.h"

namespace lattice::dist {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr size_t kMostDifferences = 5;
constexpr double kLeaving = 30;
constexpr double kMargin = 5;

std::string HelloKey(int rank) { return StrCat("hello/", rank); }

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// What differs, as "train.lr is 0.1 there and 0.2 on rank 0"; empty: nothing.
std::string Differences(const json& own, const json& root) {
  std::string text;
  size_t count = 0;
  for (const auto& [name, value] : own.items()) {
    const json there = root.contains(name) ? root[name] : json();
    if (there == value || ++count > kMostDifferences) continue;
    text += StrCat(text.empty() ? "" : "; ", name, " is ", value.dump(), " there and ", there.dump(),
                   " on rank 0");
  }
  if (count > kMostDifferences) text += StrCat("; and ", count - kMostDifferences, " more");
  return text;
}

}  // namespace

Group::Group(const GroupOptions& options) : parts_(std::make_unique<Parts>()) {
  // gloo writes to its connections in a way that signals when the other end has died. Python ignores that signal for its
  // programs; here it would end the ranks that are to say which one was lost.
  std::signal(SIGPIPE, SIG_IGN);
  parts_->place = options.place;
  parts_->patience = options.patience;
  join_seconds_ = options.join_seconds;
  Join(options);
}

Group::~Group() {
  if (parts_->watch && !parts_->left) Explain(Error("it ended before the training was over"));
  // The connections before the store.
  parts_->watch.reset();
  parts_->backend.reset();
}

int Group::rank() const { return parts_->place.rank; }
int Group::size() const { return parts_->place.size; }
int Group::size_on_this_host() const { return parts_->place.local_size; }

void Group::Join(const GroupOptions& options) {
  Place& place = parts_->place;
  const bool server = place.rank == 0 && !place.store_is_there;
  const std::string prefix = StrCat("lattice/", place.attempt, "/");
  parts_->board = std::make_unique<Board>(OpenStore(place, options.join_seconds, server), prefix);
  Board& board = *parts_->board;
  Check(board.Add(StrCat("taken/", place.rank), 1) == 1, "[dist] two processes have RANK=", place.rank,
        "; each needs a rank of its own, from 0 to WORLD_SIZE - 1");
  const json hello = {{"size", place.size}, {"host", HostName()}, {"pid", ::getpid()}};
  board.Post(HelloKey(place.rank), hello.dump());
  try {
    if (root()) {
      CheckHellos();
      board.Post("joined", hello.dump());
    }
    const json first = json::parse(
        Poll("joined", options.join_seconds + 5, "rank 0 did not gather all ranks; see what it printed"));
    const int size = first["size"];
    Check(size == place.size, "[dist] rank ", place.rank, " has WORLD_SIZE=", place.size, " but rank 0 has ",
          size, "; start all ranks with the same WORLD_SIZE");
    Place client = place;
    client.listener = -1;
    WatchOptions watch = {.rank = place.rank,
                          .size = place.size,
                          .host = hello["host"],
                          .root_host = first["host"],
                          .store = StrCat(place.address, ":", place.port),
                          .holds_store = server,
                          .patience = options.patience,
                          .lost = options.lost};
    parts_->backend = MakeGloo(place, board.store(), options.join_seconds);
    parts_->watch = std::make_unique<Watch>(Board(OpenStore(client, options.join_seconds, false), prefix),
                                            std::move(watch));
  } catch (const Error& error) {
    board.PostFirst(kCulprit, error.what());
    // The others read it from the store, which ends with this process.
    if (server) std::this_thread::sleep_for(std::chrono::seconds(1));
    throw;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    Fail("[dist] rank ", place.rank, " cannot connect to the other ranks: ", what.substr(0, what.find('\n')),
         "; GLOO_SOCKET_IFNAME names the network interface to use");
  }
}

void Group::CheckHellos() {
  std::vector<std::string> keys;
  for (int rank = 0; rank < size(); ++rank) keys.push_back(HelloKey(rank));
  const auto until = Clock::now() + Seconds(join_seconds_);
  while (!parts_->board->Has(keys) && Clock::now() < until) std::this_thread::sleep_for(kPoll);
  std::string missing;
  for (int rank = 0; rank < size(); ++rank) {
    if (parts_->board->Has({HelloKey(rank)})) continue;
    missing += StrCat(missing.empty() ? "" : ", ", rank);
  }
  Check(missing.empty(), "[dist] of WORLD_SIZE=", size(), " ranks these did not come within ", join_seconds_,
        " s: ", missing, "; start one process for every rank, with the same MASTER_ADDR and MASTER_PORT");
  for (int rank = 0; rank < size(); ++rank) {
    const json hello = json::parse(parts_->board->Read(HelloKey(rank)));
    const int theirs = hello["size"];
    Check(theirs == size(), "[dist] rank ", rank, " on host ", hello["host"].get<std::string>(),
          " has WORLD_SIZE=", theirs, " but rank 0 has ", size(),
          "; start all ranks with the same WORLD_SIZE");
  }
}

std::string Group::Poll(const std::string& key, double seconds, const std::string& missing) {
  const auto until = Clock::now() + Seconds(seconds);
  Board& board = *parts_->board;
  while (!board.Has({key})) {
    if (board.Has({kCulprit})) Fail(board.Read(std::string(kCulprit)));
    Check(seconds == 0 || Clock::now() < until, "[dist] ", missing);
    std::this_thread::sleep_for(kPoll);
  }
  return board.Read(key);
}

void Group::RequireEqual(const Facts& facts) {
  json own = json::object();
  for (const auto& [name, value] : facts) own[name] = value;
  const json first = json::parse(FromRoot(own.dump()));
  const std::string differences = Differences(own, first);
  Check(differences.empty(), "[dist] rank ", rank(), " on host ", HostName(),
        " differs from rank 0: ", differences);
  Max(0);  // nobody goes on before all have compared
}

double Group::Max(double value) {
  at::Tensor all = at::zeros({size()}, at::kDouble);
  all[rank()] = value;
  AllReduce(*this, all).Wait();
  return all.max().item<double>();
}

std::vector<double> Group::Sum(std::vector<double> values) {
  at::Tensor sums = at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble);
  AllReduce(*this, sums).Wait();
  return values;
}

std::string Group::FromRoot(const std::string& text) {
  const std::string key = StrCat("text/", parts_->shared++);
  if (root()) {
    Post(key, text);
    return text;
  }
  return Await(key);
}

void Group::Post(const std::string& key, const std::string& value) { parts_->board->Post(key, value); }
std::string Group::Await(const std::string& key) { return Poll(key, 0, ""); }
void Group::Forget(const std::string& key) { parts_->board->Remove(key); }
void Group::RecordTimeline() { parts_->timeline = std::make_unique<Timeline>(); }
Timeline* Group::timeline() const { return parts_->timeline.get(); }
void Group::WriteTimeline(const std::filesystem::path& directory) const {
  if (timeline() != nullptr) timeline()->Write(directory / StrCat("timeline-", rank(), ".json"), rank());
}
void Group::SetStep(int64_t step) { parts_->watch->SetStep(step); }

void Group::Explain(const std::exception& error) {
  if (dynamic_cast<const LostPeer*>(&error) != nullptr) {
    std::this_thread::sleep_for(Seconds(parts_->patience + kMargin));
    return;
  }
  parts_->left = true;
  parts_->watch->Retire();
  parts_->watch->Accuse(
      StrCat("[dist] rank ", rank(), " on host ", HostName(), " has failed: ", error.what()));
}

void Group::Leave() {
  parts_->left = true;
  try {
    Max(0);
    parts_->watch->Stop();
    parts_->backend.reset();
    Board& board = *parts_->board;
    board.Add("left", 1);
    const auto until = Clock::now() + Seconds(kLeaving);
    while (root() && board.Add("left", 0) < size() && Clock::now() < until)
      std::this_thread::sleep_for(kPoll);
  } catch (const std::exception&) {
    // The work is done and saved; a rank that is lost now changes nothing.
  }
}

}  // namespace lattice::dist
