// Requests that may be repeated without being applied twice.
#ifndef LATTICE_SERVER_API_IDEMPOTENCY_H_
#define LATTICE_SERVER_API_IDEMPOTENCY_H_

#include <string>

#include "server/api/call.h"
#include "server/engine/session_store.h"

namespace lattice::server {

// The field Idempotency-Key: 1 to 255 visible characters that the client chooses, a new one for each request
// and the same for its repetitions. A request with a key changes its session wholly or not at all. Its answer
// is remembered with the session, for the last eight such requests.
class IdempotencyKey {
 public:
  // Throws ApiError (400).
  explicit IdempotencyKey(const Call& call);

  bool given() const { return !key_.empty(); }
  // If the session has had this request, sends its answer, with the field Idempotent-Replayed, and returns
  // true. Throws ApiError: 422 when the key was used for another request, 409 when the answer was too long to be
  // remembered.
  bool Replay(Call& call, const SessionStore::Lease& lease, bool stream, Metrics& metrics) const;
  // Remembers the answer; to be called before the lease's Commit.
  void Remember(const SessionStore::Lease& lease, const std::string& answer) const;

  // Longer answers are not remembered.
  static constexpr size_t kLongestAnswer = size_t{64} << 10;

 private:
  std::string key_, request_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_IDEMPOTENCY_H_
