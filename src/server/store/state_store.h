// Where sessions are kept beyond the memory of one process: bytes by session id, with leases, so that one
// server at a time changes a session. Knows nothing of models.
#ifndef LATTICE_SERVER_STORE_STATE_STORE_H_
#define LATTICE_SERVER_STORE_STATE_STORE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace lattice::server::store {

enum class Failure {
  kUnavailable,  // the store does not answer, or answers nonsense
  kLost,         // the lease ran out and another server took over, or the session was removed
  kFull,         // the store holds as much as it may
};

// The message says what happened, for the server's log; it may name paths and addresses.
class StoreError : public Error {
 public:
  StoreError(Failure failure, const std::string& message) : Error(message), failure_(failure) {}
  Failure failure() const { return failure_; }

 private:
  Failure failure_;
};

[[noreturn]] inline void ThrowUnavailable(const std::string& message) {
  throw StoreError(Failure::kUnavailable, "[store] " + message);
}

struct StoreLimits {
  int64_t bytes = int64_t{16} << 30;         // directory: of all sessions; the oldest go first
  int64_t sessions = int64_t{1} << 20;       // the oldest go first
  int64_t value_bytes = int64_t{512} << 20;  // of one session
  std::chrono::milliseconds lease{10'000};   // a server that says nothing for so long loses a session
  std::chrono::milliseconds timeout{2'000};  // for one answer of the store
  std::chrono::hours unused{24 * 7};         // redis: sessions not written for so long go
};

struct Acquired {
  enum class Outcome { kHeld, kBusy, kMissing };
  Outcome outcome = Outcome::kMissing;
  std::string stamp;                  // kHeld: names the stored value; every write has another
  std::optional<std::string> value;   // kHeld: none when `known` was its stamp
  std::chrono::milliseconds left{0};  // kBusy: until the lease of the other server runs out, unless renewed
};

struct Put {
  std::string id, token;
  std::string before;  // the stamp of the value that this one replaces; empty: the session is new
  std::string stamp;   // the new value's
  std::string_view value;
  std::string owner;    // whose quota it counts for; may be empty
  bool release = true;  // give up the lease; otherwise it is held from now on
};

struct StoreFigures {
  int64_t sessions = 0, bytes = 0;  // bytes: -1 where the store does not know
};

// Ids are what IsSessionId accepts; tokens and stamps are random and chosen by the caller. All methods may be
// called from any thread, may take `timeout`, and throw StoreError.
class StateStore {
 public:
  virtual ~StateStore() = default;

  // Takes the lease of a session, unless another token has it, and returns its value, unless `known` is its
  // stamp.
  virtual Acquired Acquire(const std::string& id, const std::string& token, const std::string& known) = 0;
  // Stores a value. Throws kLost, and changes nothing, unless the token has the lease and the stored value has
  // the stamp `before`; this is the fence that stops a server which was paused for longer than its lease.
  virtual void Write(const Put& put) = 0;
  // Extends the lease; false when it is lost.
  virtual bool Renew(const std::string& id, const std::string& token) = 0;
  // Gives up the lease, if it is still held.
  virtual void Release(const std::string& id, const std::string& token) = 0;
  // Removes the session whoever has its lease; false when there is none.
  virtual bool Remove(const std::string& id) = 0;
  // How many sessions an owner has.
  virtual int64_t CountOf(const std::string& owner) = 0;
  // Throws when the store cannot be used now.
  virtual void Ping() = 0;
  virtual StoreFigures Figures() = 0;
};

// Opens the store of a `--store` option: a directory, or redis://host:port/db or rediss://...; null for
// "memory". `password_file` and `ca_file` are for Redis and may be empty. Throws Error when the text is not
// understood, and StoreError when the store cannot be used.
std::unique_ptr<StateStore> OpenStore(const std::string& spec, const StoreLimits& limits,
                                      const std::string& password_file = {}, const std::string& ca_file = {});

// "session-" and 32 hexadecimal digits: what may become a part of a path or a key.
bool IsSessionId(std::string_view id);

}  // namespace lattice::server::store

#endif  // LATTICE_SERVER_STORE_STATE_STORE_H_
