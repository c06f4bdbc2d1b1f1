// What is told about a model, a session and its memory, as JSON.
#ifndef LATTICE_SERVER_API_SESSION_JSON_H_
#define LATTICE_SERVER_API_SESSION_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "model/config.h"
#include "runtime/session.h"
#include "server/engine/conversation.h"
#include "server/engine/served_model.h"
#include "server/http/request_head.h"

namespace lattice::server {

nlohmann::ordered_json ModelJson(const ServedModel& served);
nlohmann::ordered_json SessionJson(const ServedModel& served, const std::string& id,
                                   const Conversation& conversation);

// The question about a memory that a request's query asks: ?layer=L&head=H for one head, or nothing for a summary of
// all. The config must outlive the object.
class MemoryQuery {
 public:
  // Throws ApiError (400) when the model has no such memory.
  MemoryQuery(const model::ModelConfig& config, const http::RequestHead& head);

  nlohmann::ordered_json Answer(const runtime::Session& session) const;

 private:
  nlohmann::ordered_json Summary(const runtime::Session& session) const;

  const model::ModelConfig& config_;
  std::optional<int64_t> layer_, head_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_SESSION_JSON_H_
