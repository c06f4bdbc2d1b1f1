// Sessions in a directory outlive a power loss at any moment: each is what was last acknowledged, or what was being written.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "io/power_loss.h"
#include "io/testing.h"
#include "server/store/directory_key.h"
#include "server/store/directory_store.h"

namespace lattice::server {
namespace {

namespace fs = std::filesystem;
using store::Acquired;
using store::DirectoryStore;

const std::string kKept = "session-" + std::string(32, 'c');

// The stored value, or "missing".
std::string ValueOf(DirectoryStore& store) {
  const Acquired found = store.Acquire(kKept, "reader", "");
  return found.outcome == Acquired::Outcome::kHeld ? found.value.value_or("nothing") : "missing";
}

TEST(DirectoryStorePowerLoss, SessionsAreWhatWasAcknowledged) {
  const io::TestDir dir, scratch(io::MemoryDirectory());
  const fs::path directory = dir / "store";
  fs::create_directories(directory);
  io::PowerLoss loss(directory);
  io::RecordingCalls calls;
  const std::string key(32, 'k');
  {
    const io::ScopedWriteCalls scope(calls);
    store::KeyOfDirectory(directory, key);
    calls.Acknowledge();
    DirectoryStore store(directory, {});
    store.Write({kKept, "t", "", "1", "first", "", false});
    calls.Acknowledge();
    store.Write({kKept, "t", "1", "2", "second", "", true});
    calls.Acknowledge();
    store.Remove(kKept);
    calls.Acknowledge();
  }
  loss.Replay(calls.operations());
  const std::set<std::string> allowed[] = {
      {"missing"}, {"missing", "first"}, {"first", "second"}, {"second", "missing"}, {"missing"}};
  for (const io::PowerLossModel model : {io::PowerLossModel::kOrdered, io::PowerLossModel::kAnything}) {
    std::set<std::string> seen[5];
    loss.ForEachOutcome(model, scratch.path(), [&](const fs::path& left, int acknowledged) {
      DirectoryStore store(left, {});
      seen[acknowledged].insert(ValueOf(store));
      if (acknowledged == 0) return;
      EXPECT_EQ(store::KeyOfDirectory(left, std::string(32, 'x')), key) << "sessions need it";
    });
    for (int i = 0; i < 5; ++i) EXPECT_EQ(seen[i], allowed[i]) << i;
  }
}

}  // namespace
}  // namespace lattice::server
