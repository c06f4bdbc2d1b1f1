// The table of client sessions, with exclusive leases and limits on count and bytes.
#include "server/engine/session_store.h"

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

}  // namespace

SessionStore::Lease::~Lease() {
  if (entry_) store_->Return(*entry_);
}

const std::string& SessionStore::Lease::id() const { return entry_->id; }
Conversation& SessionStore::Lease::conversation() const { return entry_->conversation; }
std::shared_ptr<Conversation> SessionStore::Lease::shared() const { return {entry_, &entry_->conversation}; }

void SessionStore::Lease::Reserve(int64_t bytes) const { store_->Reserve(*entry_, bytes); }

bool SessionStore::Fits(int64_t sessions, int64_t bytes) const {
  return static_cast<int64_t>(entries_.size()) + sessions <= limits_.count && bytes_ + bytes <= limits_.bytes;
}

bool SessionStore::MakeRoom(int64_t sessions, int64_t bytes) {
  if (Fits(sessions, bytes)) return true;
  const Clock::time_point oldest = Clock::now() - limits_.idle;
  std::erase_if(entries_, [&](const auto& item) {
    const bool goes = !item.second->busy && item.second->used < oldest;
    if (goes) bytes_ -= item.second->bytes;
    return goes;
  });
  return Fits(sessions, bytes);
}

SessionStore::Lease SessionStore::Add(Conversation conversation) {
  const int64_t bytes = conversation.Bytes();
  const auto entry = std::make_shared<Entry>(Entry{RandomId("session-"), std::move(conversation), bytes});
  const std::lock_guard lock(mutex_);
  if (!MakeRoom(1, bytes)) throw NoRoom();
  entries_.emplace(entry->id, entry);
  bytes_ += bytes;
  return Lease(this, entry);
}

void SessionStore::Reserve(Entry& entry, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (entry.removed || bytes <= entry.bytes) return;
  if (!MakeRoom(0, bytes - entry.bytes)) throw NoRoom();
  bytes_ += bytes - entry.bytes;
  entry.bytes = bytes;
}

SessionStore::Lease SessionStore::Borrow(const std::string& id, bool damaged) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) throw NoSession();
  if (found->second->busy)
    throw ApiError(409, "the session is in use by another request; wait until it is answered", "session",
                   "session_busy");
  if (found->second->conversation.damaged && !damaged)
    throw ApiError(500, "an earlier request failed while it changed this session; rewind or delete it",
                   "session", "session_damaged");
  found->second->busy = true;
  return Lease(this, found->second);
}

void SessionStore::Remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) throw NoSession();
  bytes_ -= found->second->bytes;
  found->second->removed = true;
  entries_.erase(found);
}

void SessionStore::Return(Entry& entry) {
  const std::lock_guard lock(mutex_);
  entry.busy = false;
  entry.used = Clock::now();
  if (entry.removed) return;
  const int64_t bytes = entry.conversation.Bytes();
  bytes_ += bytes - entry.bytes;
  entry.bytes = bytes;
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
