// The sessions that clients keep on the server.
#ifndef LATTICE_SERVER_ENGINE_SESSION_STORE_H_
#define LATTICE_SERVER_ENGINE_SESSION_STORE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "server/engine/conversation.h"

namespace lattice::server {

struct SessionLimits {
  int64_t count = 4096;
  int64_t bytes = int64_t{1} << 30;
  int64_t tokens = int64_t{1} << 20;  // of one session, since its start or the state it was loaded from
  // When there is no room, sessions that have not been used for so long are evicted.
  std::chrono::seconds idle{3600};
};

// All methods may be called from any thread. Ids are random and chosen by the store.
class SessionStore {
  struct Entry;

 public:
  explicit SessionStore(const SessionLimits& limits) : limits_(limits) {}

  // Exclusive access to one session for the lifetime of the object.
  class Lease {
   public:
    Lease(SessionStore* store, std::shared_ptr<Entry> entry) : store_(store), entry_(std::move(entry)) {}
    Lease(Lease&&) = default;
    ~Lease();

    const std::string& id() const;
    Conversation& conversation() const;
    // The conversation, kept alive even if the session is removed meanwhile.
    std::shared_ptr<Conversation> shared() const;
    // Reserves `bytes` for the session until the lease ends, when its true size is counted. Throws ApiError
    // (429) when there is no room.
    void Reserve(int64_t bytes) const;

   private:
    SessionStore* store_;
    std::shared_ptr<Entry> entry_;
  };

  // Add throws ApiError 429 when there is no room. Borrow throws ApiError 404 when there is no such session,
  // 409 when another request uses it, and 500 when a failure has damaged it, unless `damaged` is true.
  Lease Add(Conversation conversation);
  Lease Borrow(const std::string& id, bool damaged = false);
  // Removes a session; its state is freed once no request uses it. Throws ApiError (404).
  void Remove(const std::string& id);
  // Throws ApiError (400) when the session would become too long.
  void CheckLength(const Conversation& conversation, int64_t more_tokens) const;

  const SessionLimits& limits() const { return limits_; }
  int64_t Count() const;
  int64_t Bytes() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string id;
    Conversation conversation;
    int64_t bytes = 0;  // as counted in bytes_
    bool busy = true;
    bool removed = false;
    Clock::time_point used = Clock::now();
  };
  void Return(Entry& entry);
  void Reserve(Entry& entry, int64_t bytes);
  // Evicts idle sessions if there is no room. Returns whether there is room.
  bool MakeRoom(int64_t sessions, int64_t bytes);
  bool Fits(int64_t sessions, int64_t bytes) const;

  const SessionLimits limits_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  int64_t bytes_ = 0;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SESSION_STORE_H_
