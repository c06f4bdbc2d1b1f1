// A session as bytes for a store.
#ifndef LATTICE_SERVER_ENGINE_SESSION_RECORD_H_
#define LATTICE_SERVER_ENGINE_SESSION_RECORD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/engine/conversation.h"

namespace lattice::server {

// A request with an idempotency key that has been applied to a session.
struct AppliedRequest {
  std::string key;      // SHA-256 of the key that the client chose
  std::string request;  // SHA-256 of the request
  std::string answer;   // JSON; empty when it was too long to be kept
  int64_t position = 0;
};

// All that a session consists of.
struct SessionRecord {
  explicit SessionRecord(Conversation of) : conversation(std::move(of)) {}

  int64_t Bytes() const;

  Conversation conversation;
  std::string owner;                    // the key that made it; empty where the server has one key or none
  std::vector<AppliedRequest> applied;  // the last few, oldest first
};

// The bytes: a line "lattice stored session 1", the HMAC of the rest, whether the rest is compressed, a line of
// JSON, and the tokens, logits and states (session files) that it announces. They name the session and the
// stamp they were stored under, so that values that a store has mixed up are noticed.
struct RecordFormat {
  std::string key;        // of the HMAC; servers that share a store share it
  bool compress = false;  // by zstd
};
std::string EncodeRecord(const SessionRecord& record, const std::string& id, const std::string& stamp,
                         const RecordFormat& format);
// Throws Error when the bytes are damaged, of another key, another session or another model.
SessionRecord DecodeRecord(const std::shared_ptr<const runtime::Model>& model, std::string_view bytes,
                           const std::string& id, const std::string& stamp, const RecordFormat& format);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SESSION_RECORD_H_
