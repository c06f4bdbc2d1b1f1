// Idempotency keys: recognises a repeated request and answers it from what the session remembers.
#include "server/api/idempotency.h"

#include <algorithm>

#include "io/hash.h"
#include "server/api/api.h"

namespace lattice::server {

IdempotencyKey::IdempotencyKey(const Call& call) {
  const std::string* const given = call.request.head.Field("idempotency-key");
  if (given == nullptr) return;
  const bool visible = std::all_of(given->begin(), given->end(), [](char c) { return c > ' ' && c <= '~'; });
  if (given->empty() || given->size() > 255 || !visible)
    throw ApiError(400, "Idempotency-Key is not 1 to 255 visible ASCII characters", "Idempotency-Key");
  key_ = io::Sha256Hex(*given);
  request_ = io::Sha256Hex(StrCat(call.route().path, "\n", call.body()));
}

bool IdempotencyKey::Replay(Call& call, const SessionStore::Lease& lease, bool stream,
                            Metrics& metrics) const {
  const AppliedRequest* const done = given() ? lease.Applied(key_) : nullptr;
  if (done == nullptr) return false;
  if (done->request != request_)
    throw ApiError(422, "this Idempotency-Key was used for another request; choose a new one for each",
                   "Idempotency-Key", "idempotency_key_reused");
  if (done->answer.empty())
    throw ApiError(
        409,
        StrCat("the request was applied before, and its answer was too long to be kept; the session "
               "was then at position ",
               done->position),
        "Idempotency-Key", "already_applied");
  ++metrics.replayed;
  http::Response response =
      MakeResponse(200, stream ? "text/event-stream" : "application/json", done->answer);
  response.fields.emplace_back("Idempotent-Replayed", "true");
  call.Answer(std::move(response));
  return true;
}

void IdempotencyKey::Remember(const SessionStore::Lease& lease, const std::string& answer) const {
  if (!given()) return;
  lease.Remember(
      {key_, request_, answer.size() > kLongestAnswer ? "" : answer, lease.conversation().position()});
}

}  // namespace lattice::server
