// The sessions that clients keep on the server: in memory, and beyond it in a store.
#ifndef LATTICE_SERVER_ENGINE_SESSION_STORE_H_
#define LATTICE_SERVER_ENGINE_SESSION_STORE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "server/engine/conversation.h"
#include "server/engine/durability.h"
#include "server/engine/server_metrics.h"
#include "server/engine/session_record.h"
#include "server/store/state_store.h"

namespace lattice::server {

// Of the sessions in memory; a store has limits of its own.
struct SessionLimits {
  int64_t count = 4096;
  int64_t bytes = int64_t{1} << 30;
  int64_t tokens = int64_t{1} << 20;  // of one session, since its start or the state it was loaded from
  // Without a store, when there is no room, sessions that have not been used for so long are forgotten.
  std::chrono::seconds idle{3600};
  // With a store, sessions that have not been used for so long leave memory.
  std::chrono::seconds resident{300};
};

// How sessions are kept beyond memory.
struct SessionKeeping {
  std::shared_ptr<store::StateStore> store;  // null: in memory only
  std::chrono::milliseconds lease{10'000};   // as the store counts it
  Durability durability;
  RecordFormat format;
};

// All methods may be called from any thread. With a store they may wait for it, so they are called by threads
// that nothing else depends on. Ids are random and chosen by this class.
class SessionStore {
  struct Entry;

 public:
  SessionStore(const SessionLimits& limits, std::shared_ptr<const runtime::Model> model,
               SessionKeeping keeping, Metrics& metrics);
  // Does not store anything; see Drain.
  ~SessionStore();

  // Exclusive access to one session for the lifetime of the object, among all servers that share the store.
  class Lease {
   public:
    Lease(SessionStore* store, std::shared_ptr<Entry> entry) : store_(store), entry_(std::move(entry)) {}
    Lease(Lease&&) = default;
    // Stores what the request has changed, unless Commit has done so. When that fails, the session is again
    // what the store has.
    ~Lease();

    const std::string& id() const;
    Conversation& conversation() const;
    // The conversation, kept alive even if the session is removed meanwhile.
    std::shared_ptr<Conversation> shared() const;
    // Reserves `bytes` for the session until the lease ends, when its true size is counted. Throws ApiError
    // (429) when there is no room.
    void Reserve(int64_t bytes) const;

    // Must be called before the session is changed. `wholly`: unless Commit is called, the lease's end takes
    // the changes back.
    void Change(bool wholly = false) const;
    // The request with this key that was applied before; null when there is none.
    const AppliedRequest* Applied(const std::string& key) const;
    void Remember(AppliedRequest request) const;
    // Stores the session, as the durability says, and gives up the lease of the store, so that other servers
    // may use the session before this object ends. Throws ApiError (503, 409) when that is not possible; the
    // session is then again what the store has.
    void Commit() const;
    // Stores a state from the middle of a request, and keeps the lease. Does nothing after Change(true).
    void StoreMidway(const Conversation& state) const;

   private:
    SessionStore* store_;
    std::shared_ptr<Entry> entry_;
  };

  // The new session is stored by Change and Commit, and forgotten without them where there is a store. Throws ApiError 429 when there is no room, or the owner has `quota`
  // sessions already (0: no quota).
  Lease Add(Conversation conversation, const std::string& owner = {}, int64_t quota = 0);
  // Throws ApiError 404 when there is no such session of this owner, 409 when another request or another server
  // uses it, 503 when the store does not answer, and 500 when a failure has damaged it, unless `damaged`.
  Lease Borrow(const std::string& id, const std::string& owner = {}, bool damaged = false);
  // Removes a session; its state is freed once no request uses it. Throws ApiError (404, 503).
  void Remove(const std::string& id, const std::string& owner = {});
  // Throws ApiError (400) when the session would become too long.
  void CheckLength(const Conversation& conversation, int64_t more_tokens) const;

  // Stores what is not stored yet and gives up all leases. No request may use a session any more.
  void Drain();

  const SessionLimits& limits() const { return limits_; }
  const SessionKeeping& keeping() const { return keeping_; }
  // In memory.
  int64_t Count() const;
  int64_t Bytes() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string id;
    std::optional<SessionRecord> record;   // none: not loaded from the store
    int64_t bytes = 0;                     // as counted in bytes_
    bool busy = true;                      // a thread uses it; guards all that follows
    bool removed = false;                  // not in the table any more
    bool changed = false;                  // by the present request
    bool unsaved = false;                  // memory is ahead of the store
    bool failed = false;                   // memory must not be used any more
    std::optional<Conversation> original;  // before the present request, if it is to be applied wholly
    std::string token, stamp;              // of the lease (empty: not held); of the stored value
    int64_t stored_position = -1;          // -1: nothing is stored yet
    Clock::time_point used = Clock::now();
  };
  using EntryPtr = std::shared_ptr<Entry>;

  // The table.
  EntryPtr Occupy(const std::string& id);
  void Return(const EntryPtr& entry) noexcept;
  void Reserve(Entry& entry, int64_t bytes);
  bool Fits(int64_t sessions, int64_t bytes) const;
  // Returns whether there is room, after sessions that may go have gone.
  bool MakeRoom(std::unique_lock<std::mutex>& lock, int64_t sessions, int64_t bytes);
  void ForgetIdle();
  void LeaveMemory(std::unique_lock<std::mutex>& lock, int64_t sessions, int64_t bytes);
  void Count(Entry& entry, int64_t bytes);
  void Forget(Entry& entry);
  int64_t CountOf(const std::string& owner);

  // The store.
  void Fetch(Entry& entry);
  bool IsDue(const Entry& entry) const;
  // Writes a state, of the entry or on the way to it. Throws ApiError.
  void Write(Entry& entry, const SessionRecord& record, bool release);
  void Commit(Entry& entry);
  void Release(Entry& entry) noexcept;
  // Calls the store, and counts and translates what goes wrong.
  template <typename Call>
  auto AskStore(const Call& call) {
    const Timer timer(metrics_.store_seconds);
    try {
      return call();
    } catch (const store::StoreError& error) {
      Failed(error);
    }
  }
  [[noreturn]] void Failed(const store::StoreError& error);
  void SetToken(Entry& entry, const std::string& token);
  // Writes an unsaved session that no request uses; false when that failed.
  bool SaveIdle(std::unique_lock<std::mutex>& lock, const EntryPtr& entry);
  void Keep();
  void RenewLeases();
  void SweepIdle();

  const SessionLimits limits_;
  const std::shared_ptr<const runtime::Model> model_;
  const SessionKeeping keeping_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, EntryPtr> entries_;
  int64_t bytes_ = 0;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread keeper_;  // renews leases and makes idle sessions leave memory
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SESSION_STORE_H_
