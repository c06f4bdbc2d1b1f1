// The table of client sessions, with exclusive leases and limits on count and bytes.
#include "server/engine/session_store.h"

#include <algorithm>
#include <vector>

#include "server/engine/api_error.h"
#include "server/engine/random_id.h"

namespace lattice::server {
namespace {

ApiError NoSession() {
  return ApiError(404, "there is no such session; it was deleted, or this server never had it", "session",
                  "session_not_found");
}

ApiError NoRoom() {
  return ApiError(429, "the server holds as many sessions as it may; delete some or try later", "session",
                  "too_many_sessions");
}

// Applied requests that are remembered for a session.
constexpr size_t kMostApplied = 8;

}  // namespace

SessionStore::Lease::~Lease() {
  if (entry_) store_->Return(entry_);
}

const std::string& SessionStore::Lease::id() const { return entry_->id; }
Conversation& SessionStore::Lease::conversation() const { return entry_->record->conversation; }
std::shared_ptr<Conversation> SessionStore::Lease::shared() const {
  return {entry_, &entry_->record->conversation};
}

void SessionStore::Lease::Reserve(int64_t bytes) const { store_->Reserve(*entry_, bytes); }

void SessionStore::Lease::Change(bool wholly) const {
  if (wholly) entry_->original = entry_->record->conversation.Fork();
  entry_->changed = true;
}

const AppliedRequest* SessionStore::Lease::Applied(const std::string& key) const {
  for (const AppliedRequest& one : entry_->record->applied) {
    if (one.key == key) return &one;
  }
  return nullptr;
}

void SessionStore::Lease::Remember(AppliedRequest request) const {
  std::vector<AppliedRequest>& applied = entry_->record->applied;
  applied.push_back(std::move(request));
  if (applied.size() > kMostApplied) applied.erase(applied.begin());
}

void SessionStore::Lease::Commit() const { store_->Commit(*entry_); }

void SessionStore::Lease::StoreMidway(const Conversation& state) const {
  if (store_->keeping_.store == nullptr || entry_->original) return;
  SessionRecord record(state.Fork());
  record.owner = entry_->record->owner;
  record.applied = entry_->record->applied;
  store_->Write(*entry_, record, false);
}

SessionStore::SessionStore(const SessionLimits& limits, std::shared_ptr<const runtime::Model> model,
                           SessionKeeping keeping, Metrics& metrics)
    : limits_(limits), model_(std::move(model)), keeping_(std::move(keeping)), metrics_(metrics) {
  if (keeping_.store != nullptr) keeper_ = std::thread([this] { Keep(); });
}

SessionStore::~SessionStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (keeper_.joinable()) keeper_.join();
}

bool SessionStore::Fits(int64_t sessions, int64_t bytes) const {
  return static_cast<int64_t>(entries_.size()) + sessions <= limits_.count && bytes_ + bytes <= limits_.bytes;
}

void SessionStore::ForgetIdle() {
  const Clock::time_point oldest = Clock::now() - limits_.idle;
  std::erase_if(entries_, [&](const auto& item) {
    const bool goes = !item.second->busy && item.second->used < oldest;
    if (goes) bytes_ -= item.second->bytes;
    return goes;
  });
}

// The least recently used go first, those that are stored before those that must be stored now. An eighth of
// the room is made at a time, so that the table is not sorted for every request.
void SessionStore::LeaveMemory(std::unique_lock<std::mutex>& lock, int64_t sessions, int64_t bytes) {
  std::vector<EntryPtr> idle;
  for (const auto& [id, entry] : entries_) {
    if (!entry->busy) idle.push_back(entry);
  }
  std::sort(idle.begin(), idle.end(), [](const EntryPtr& a, const EntryPtr& b) { return a->used < b->used; });
  for (const EntryPtr& entry : idle) {
    if (Fits(sessions + limits_.count / 8, bytes + limits_.bytes / 8)) return;
    if (entry->unsaved) continue;
    Forget(*entry);
    ++metrics_.sessions_left_memory;
  }
  for (const EntryPtr& entry : idle) {
    if (Fits(sessions, bytes)) return;
    if (!entry->removed && !entry->busy && SaveIdle(lock, entry)) Forget(*entry);
  }
}

bool SessionStore::MakeRoom(std::unique_lock<std::mutex>& lock, int64_t sessions, int64_t bytes) {
  if (Fits(sessions, bytes)) return true;
  if (keeping_.store == nullptr) {
    ForgetIdle();
  } else {
    LeaveMemory(lock, sessions, bytes);
  }
  return Fits(sessions, bytes);
}

void SessionStore::Count(Entry& entry, int64_t bytes) {
  bytes_ += bytes - entry.bytes;
  entry.bytes = bytes;
}

void SessionStore::Forget(Entry& entry) {
  if (entry.removed) return;
  entry.removed = true;
  bytes_ -= entry.bytes;
  entries_.erase(entry.id);
}

int64_t SessionStore::CountOf(const std::string& owner) {
  if (keeping_.store != nullptr) return AskStore([&] { return keeping_.store->CountOf(owner); });
  const std::lock_guard lock(mutex_);
  return std::count_if(entries_.begin(), entries_.end(),
                       [&](const auto& item) { return item.second->record->owner == owner; });
}

SessionStore::Lease SessionStore::Add(Conversation conversation, const std::string& owner, int64_t quota) {
  if (quota > 0 && CountOf(owner) >= quota) {
    ++metrics_.over_quota;
    throw ApiError(429, StrCat("this key has ", quota, " sessions, as many as it may; delete some"),
                   "session", "session_quota");
  }
  const auto entry = std::make_shared<Entry>();
  entry->id = RandomId("session-");
  entry->record.emplace(std::move(conversation));
  entry->record->owner = owner;
  const int64_t bytes = entry->record->Bytes();
  std::unique_lock lock(mutex_);
  if (!MakeRoom(lock, 1, bytes)) throw NoRoom();
  entries_.emplace(entry->id, entry);
  Count(*entry, bytes);
  return Lease(this, entry);
}

void SessionStore::Reserve(Entry& entry, int64_t bytes) {
  std::unique_lock lock(mutex_);
  if (entry.removed || bytes <= entry.bytes) return;
  if (!MakeRoom(lock, 0, bytes - entry.bytes)) throw NoRoom();
  if (!entry.removed) Count(entry, bytes);
}

// Marks the session as busy; one that is only in the store gets an entry without a record.
SessionStore::EntryPtr SessionStore::Occupy(const std::string& id) {
  std::unique_lock lock(mutex_);
  auto found = entries_.find(id);
  if (found == entries_.end() && keeping_.store == nullptr) throw NoSession();
  if (found == entries_.end()) {
    if (!MakeRoom(lock, 1, 0)) throw NoRoom();
    const auto entry = std::make_shared<Entry>();
    entry->id = id;
    const auto [at, added] = entries_.emplace(id, entry);
    if (added) return entry;
    found = at;  // another request came first while room was made
  }
  if (found->second->busy)
    throw ApiError(409, "the session is in use by another request; wait until it is answered", "session",
                   "session_busy");
  found->second->busy = true;
  return found->second;
}

SessionStore::Lease SessionStore::Borrow(const std::string& id, const std::string& owner, bool damaged) {
  if (!store::IsSessionId(id)) throw NoSession();
  const EntryPtr entry = Occupy(id);
  Lease lease(this, entry);
  if (keeping_.store != nullptr && entry->token.empty()) Fetch(*entry);
  if (!entry->record || entry->record->owner != owner) throw NoSession();
  if (entry->record->conversation.damaged && !damaged)
    throw ApiError(500, "an earlier request failed while it changed this session; rewind or delete it",
                   "session", "session_damaged");
  return lease;
}

void SessionStore::Remove(const std::string& id, const std::string& owner) {
  if (!store::IsSessionId(id)) throw NoSession();
  bool known = false, here = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    here = known = found != entries_.end();
    const bool busy = here && found->second->busy;
    if (here && !busy) known = found->second->record && found->second->record->owner == owner;
    if (busy && !owner.empty())  // whose it is cannot be looked up now
      throw ApiError(409, "the session is in use by another request; wait until it is answered", "session",
                     "session_busy");
  }
  if (keeping_.store != nullptr && !here && !owner.empty()) Borrow(id, owner, true);  // is it this owner's?
  if (here && !known) throw NoSession();
  const bool stored = keeping_.store != nullptr && AskStore([&] { return keeping_.store->Remove(id); });
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) {
    Forget(*EntryPtr(found->second));
  } else if (!stored) {
    throw NoSession();
  }
}

void SessionStore::Return(const EntryPtr& entry) noexcept {
  bool removed = false;
  {
    const std::lock_guard lock(mutex_);
    removed = entry->removed;
  }
  try {
    if (entry->original) {
      entry->record->conversation = *std::move(entry->original);
      entry->changed = false;
    }
    if (entry->changed && !removed && !entry->failed) Commit(*entry);
    const bool never_stored = keeping_.store != nullptr && entry->stored_position < 0;
    entry->failed = entry->failed || never_stored;
  } catch (const std::exception&) {
    entry->failed = true;  // reported by whoever called the store
  }
  entry->original.reset();
  if (!entry->token.empty() && !entry->unsaved) Release(*entry);
  const std::lock_guard lock(mutex_);
  if (entry->failed || !entry->record) Forget(*entry);
  entry->busy = false;
  entry->used = Clock::now();
  if (!entry->removed) Count(*entry, entry->record->Bytes());
}

void SessionStore::CheckLength(const Conversation& conversation, int64_t more_tokens) const {
  const auto tokens = static_cast<int64_t>(conversation.tokens.size()) + more_tokens;
  if (tokens <= limits_.tokens) return;
  throw ApiError(
      400, StrCat("the session would have ", tokens, " tokens; at most ", limits_.tokens, " are kept in one"),
      "session", "context_length_exceeded");
}

int64_t SessionStore::Count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(entries_.size());
}

int64_t SessionStore::Bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace lattice::server
