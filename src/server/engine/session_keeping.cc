// What SessionStore does with a store: fetching sessions, storing them, renewing leases, and sending idle
// sessions out of memory.
#include <algorithm>
#include <atomic>
#include <iostream>
#include <vector>

#include "server/engine/api_error.h"
#include "server/engine/random_id.h"
#include "server/engine/session_store.h"

namespace lattice::server {
namespace {

ApiError ForClient(const store::StoreError& error) {
  switch (error.failure()) {
    case store::Failure::kLost:
      return ApiError(409,
                      "another server has taken this session over, or it was removed, while this request was "
                      "answered; nothing of the request is stored. Ask for the session's position and go on "
                      "from there",
                      "session", "session_lost");
    case store::Failure::kFull:
      return ApiError(503, "the store of sessions is full; delete some or try later", "session",
                      "store_full");
    default:
      return ApiError(503,
                      "the store of sessions does not answer. Ask for the session's position when it does, "
                      "and go on from there",
                      "session", "store_unavailable");
  }
}

// At most one line a second: a store that is down fails every request.
void LogFailure(const store::StoreError& error) {
  static std::atomic<int64_t> last{0};
  const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  int64_t before = last;
  if (before != 0 && now - before < std::chrono::nanoseconds(std::chrono::seconds(1)).count()) return;
  if (last.compare_exchange_strong(before, now)) std::cerr << "lattice: " << error.what() << "\n";
}

}  // namespace

void SessionStore::Failed(const store::StoreError& error) {
  ++(error.failure() == store::Failure::kLost ? metrics_.store_lost : metrics_.store_failures);
  LogFailure(error);
  throw ForClient(error);
}

// The keeper reads tokens while requests change them.
void SessionStore::SetToken(Entry& entry, const std::string& token) {
  const std::lock_guard lock(mutex_);
  entry.token = token;
}

void SessionStore::Fetch(Entry& entry) {
  const std::string token = RandomId("");
  const store::Acquired acquired = AskStore(
      [&] { return keeping_.store->Acquire(entry.id, token, entry.record ? entry.stamp : std::string()); });
  ++metrics_.store_reads;
  if (acquired.outcome == store::Acquired::Outcome::kBusy) {
    ++metrics_.store_conflicts;
    throw ApiError(409, "the session is in use by another server; wait until it is answered there", "session",
                   "session_busy");
  }
  if (acquired.outcome == store::Acquired::Outcome::kMissing) {
    entry.failed = true;  // what memory has of it was removed, or has been lost by the store
    throw ApiError(404, "there is no such session; it was deleted, or the store has lost it", "session",
                   "session_not_found");
  }
  SetToken(entry, token);
  if (!acquired.value) return;
  try {
    entry.record = DecodeRecord(model_, *acquired.value, entry.id, acquired.stamp, keeping_.format);
  } catch (const std::exception& error) {
    entry.failed = true;
    ++metrics_.store_failures;
    std::cerr << "lattice: " << error.what() << "\n";
    throw ApiError(500, StrCat("the stored session cannot be used: ", error.what()), "session",
                   "session_damaged");
  }
  entry.stamp = acquired.stamp;
  entry.stored_position = entry.record->conversation.position();
  Reserve(entry, entry.record->Bytes());
}

bool SessionStore::IsDue(const Entry& entry) const {
  const int64_t more = entry.record->conversation.position() - entry.stored_position;
  switch (keeping_.durability.level) {
    case Durability::Level::kTokens:
      return entry.stored_position < 0 || more < 0 || more >= keeping_.durability.tokens;
    case Durability::Level::kEnd:
      return entry.stored_position < 0;
    default:
      return true;
  }
}

void SessionStore::Write(Entry& entry, const SessionRecord& record, bool release) {
  const std::string stamp = RandomId("");
  const std::string value = EncodeRecord(record, entry.id, stamp, keeping_.format);
  try {
    AskStore([&] {
      keeping_.store->Write({entry.id, entry.token, entry.stamp, stamp, value, record.owner, release});
    });
  } catch (...) {
    entry.failed = true;
    throw;
  }
  ++metrics_.store_writes;
  metrics_.store_written_bytes += static_cast<int64_t>(value.size());
  entry.stamp = stamp;
  entry.stored_position = record.conversation.position();
  if (release) SetToken(entry, "");
}

void SessionStore::Commit(Entry& entry) {
  entry.original.reset();
  if (!entry.changed) return;
  entry.changed = false;
  if (keeping_.store == nullptr) return;
  if (entry.record->conversation.damaged) {
    entry.failed = true;  // the store has the state before the failure
    return;
  }
  if (!IsDue(entry)) {
    entry.unsaved = true;
    return;
  }
  Write(entry, *entry.record, true);
  entry.unsaved = false;
}

void SessionStore::Release(Entry& entry) noexcept {
  try {
    AskStore([&] { keeping_.store->Release(entry.id, entry.token); });
  } catch (const std::exception&) {
    // It runs out by itself.
  }
  SetToken(entry, "");
}

bool SessionStore::SaveIdle(std::unique_lock<std::mutex>& lock, const EntryPtr& entry) {
  if (!entry->unsaved) return true;
  entry->busy = true;
  lock.unlock();
  bool saved = true;
  try {
    Write(*entry, *entry->record, true);
    entry->unsaved = false;
  } catch (const std::exception&) {
    saved = false;
  }
  lock.lock();
  entry->busy = false;
  // Without its lease, memory has a state that can never be stored.
  if (!saved) Forget(*entry);
  return saved;
}

void SessionStore::RenewLeases() {
  std::vector<std::pair<std::string, std::string>> held;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (!entry->token.empty()) held.emplace_back(id, entry->token);
    }
  }
  for (const auto& [id, token] : held) {
    try {
      // A lease that is lost is noticed when the session is to be written.
      keeping_.store->Renew(id, token);
    } catch (const store::StoreError& error) {
      ++metrics_.store_failures;
      LogFailure(error);
    }
  }
}

void SessionStore::SweepIdle() {
  std::unique_lock lock(mutex_);
  const Clock::time_point oldest = Clock::now() - limits_.resident;
  std::vector<EntryPtr> idle;
  for (const auto& [id, entry] : entries_) {
    if (!entry->busy && entry->used < oldest) idle.push_back(entry);
  }
  for (const EntryPtr& entry : idle) {
    if (entry->removed || entry->busy || entry->used >= oldest || !SaveIdle(lock, entry)) continue;
    Forget(*entry);
    ++metrics_.sessions_left_memory;
  }
}

void SessionStore::Keep() {
  const auto pause = std::max(keeping_.lease / 3, std::chrono::milliseconds(1));
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, pause, [&] { return stopping_; })) {
    lock.unlock();
    RenewLeases();
    SweepIdle();
    lock.lock();
  }
}

void SessionStore::Drain() {
  if (keeping_.store == nullptr) return;
  std::unique_lock lock(mutex_);
  std::vector<EntryPtr> all;
  for (const auto& [id, entry] : entries_) all.push_back(entry);
  for (const EntryPtr& entry : all) {
    if (!entry->busy && !entry->removed) SaveIdle(lock, entry);
  }
}

}  // namespace lattice::server
