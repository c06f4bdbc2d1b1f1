// Models, sessions and memories as JSON.
#include "server/api/session_json.h"

#include <cmath>

#include "runtime/memory_view.h"
#include "server/engine/api_error.h"
#include "server/engine/memory_trace.h"

namespace lattice::server {
namespace {

using Json = nlohmann::ordered_json;

// An integer query parameter, or nothing when it is absent.
std::optional<int64_t> Parameter(const http::RequestHead& head, const std::string& name, int64_t below) {
  if (head.Query(name) == nullptr) return std::nullopt;
  const std::string text = *head.Query(name);
  int64_t value = 0;
  const bool digits =
      !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  if (digits) value = std::stoll(text);
  if (!digits || value >= below) throw ApiError(400, StrCat(name, " is not one of 0 to ", below - 1), name);
  return value;
}

Json HeadJson(std::span<const float> memory, int64_t slots, int64_t width) {
  const runtime::MemoryView view = runtime::ViewMemory(memory, slots, width);
  return {{"effective_rank", Rounded(view.effective_rank)},
          {"mean_similarity", Rounded(view.similarity)},
          {"norm", Rounded(std::sqrt(runtime::SquaredLength(memory)))}};
}

}  // namespace

Json ModelJson(const ServedModel& served) {
  const model::ModelConfig& config = served.model->config();
  return {{"id", served.name},
          {"object", "model"},
          {"created", served.created},
          {"owned_by", "lattice"},
          {"mixer", config.MixerText()},
          {"layers", config.layers},
          {"heads", config.heads},
          {"width", config.width},
          {"vocabulary", config.vocab_size},
          {"tokenizer", served.tokenizer->kind()}};
}

Json SessionJson(const ServedModel& served, const std::string& id, const Conversation& conversation) {
  const model::ModelConfig& config = served.model->config();
  return {{"id", id},
          {"object", "session"},
          {"position", conversation.position()},
          {"bytes", conversation.Bytes()},
          {"model", served.name},
          {"mixer", config.MixerText()},
          {"layers", config.layers},
          {"heads", config.heads},
          {"slots", config.HasMemory() ? config.Slots() : 0}};
}

MemoryQuery::MemoryQuery(const model::ModelConfig& config, const http::RequestHead& head) : config_(config) {
  if (!config.HasMemory())
    throw ApiError(400, "this model is a transformer: it keeps every token and has no memory to show", "",
                   "no_memory");
  layer_ = Parameter(head, "layer", config.layers);
  head_ = Parameter(head, "head", config.heads);
  if (layer_.has_value() != head_.has_value())
    throw ApiError(400, "layer and head belong together", layer_ ? "head" : "layer");
  if (layer_ && !config.HasMemory(*layer_))
    throw ApiError(400, "this layer is attention and has no memory to show", "layer", "no_memory");
}

Json MemoryQuery::Summary(const runtime::Session& session) const {
  Json layers = Json::array();
  for (int64_t l = 0; l < config_.layers; ++l) {
    layers.push_back(Json::array());
    if (!config_.HasMemory(l)) continue;
    for (int64_t h = 0; h < config_.heads; ++h)
      layers.back().push_back(HeadJson(session.Memory(l, h), config_.Slots(), config_.HeadDim()));
  }
  return {{"layers", std::move(layers)}};
}

Json MemoryQuery::Answer(const runtime::Session& session) const {
  if (!layer_) return Summary(session);
  const int64_t slots = config_.Slots();
  const runtime::MemoryView view =
      runtime::ViewMemory(session.Memory(*layer_, *head_), slots, config_.HeadDim());
  Json norms = Json::array(), similarity = Json::array();
  for (size_t i = 0; i < view.lengths.size(); ++i) {
    norms.push_back(Rounded(view.lengths[i]));
    similarity.push_back(Json::array());
    for (size_t j = 0; j < view.lengths.size(); ++j)
      similarity.back().push_back(Rounded(view.cosines[i * view.lengths.size() + j]));
  }
  return {{"layer", *layer_},
          {"head", *head_},
          {"slots", slots},
          {"norms", std::move(norms)},
          {"similarity", std::move(similarity)},
          {"effective_rank", Rounded(view.effective_rank)}};
}

}  // namespace lattice::server
