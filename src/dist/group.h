// The processes that train together: who they are, what they agree on, and how they end. This header needs no
// torch; dist/collectives.h has the operations on tensors.
#ifndef LATTICE_DIST_GROUP_H_
#define LATTICE_DIST_GROUP_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "dist/place.h"
#include "dist/timeline.h"

namespace lattice::dist {

// A collective operation failed: a rank is gone, or the network. Which one, the watch says (Group::Explain).
class LostPeer : public Error {
 public:
  using Error::Error;
};

struct GroupOptions {
  Place place;
  double join_seconds = 50;  // for all ranks to come together
  double patience = 7;       // seconds without a sign of life after which a rank counts as lost
  // Called from another thread when a rank is lost, with what happened. Must end the process.
  std::function<void(const std::string&)> lost;
};

// What every rank must have alike, by name.
using Facts = std::vector<std::pair<std::string, std::string>>;

// One per process. The methods are called by the thread that trains, by all ranks in the same order, unless
// said otherwise. The store listens on the one address that MASTER_ADDR names, and gloo on the one from which
// this host reaches it (GLOO_SOCKET_IFNAME names another interface).
class Group {
 public:
  // Brings all ranks together. Throws Error that says who is missing, or what is wrong.
  explicit Group(const GroupOptions& options);
  // Without Leave(), the other ranks are told that this one has ended early.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const;
  int size() const;
  int size_on_this_host() const;
  bool root() const { return rank() == 0; }

  // Throws Error, on every rank, when a rank's facts differ from those of rank 0; says which.
  void RequireEqual(const Facts& facts);

  // The largest of all ranks' values; the sums of all ranks' values. Same bits on every rank.
  double Max(double value);
  std::vector<double> Sum(std::vector<double> values);
  bool Any(bool value) { return Max(value ? 1 : 0) > 0; }

  // Rank 0's text.
  std::string FromRoot(const std::string& text);

  // Notes on the store, for any thread. Await waits until the key is there, without a limit: the watch ends
  // the process when a rank is lost.
  void Post(const std::string& key, const std::string& value);
  std::string Await(const std::string& key);
  void Forget(const std::string& key);

  // Where what this rank does is recorded; null: nowhere, unless RecordTimeline was called. WriteTimeline writes it as
  // timeline-<rank>.json, or nothing.
  void RecordTimeline();
  Timeline* timeline() const;
  void WriteTimeline(const std::filesystem::path& directory) const;

  // The step that this rank has reached, for the words of the others when it is lost.
  void SetStep(int64_t step);

  // Before this process ends with `error`: tells the others, or, when another rank is the reason, waits for
  // the watch to find out which, and end the process.
  void Explain(const std::exception& error);

  // All ranks are done: waits until nobody needs the store any more.
  void Leave();

  struct Parts;
  Parts& parts() { return *parts_; }

 private:
  void Join(const GroupOptions& options);
  void CheckHellos();
  std::string Poll(const std::string& key, double seconds, const std::string& missing);

  double join_seconds_ = 0;

  std::unique_ptr<Parts> parts_;
};

}  // namespace lattice::dist

#endif  // LATTICE_DIST_GROUP_H_
