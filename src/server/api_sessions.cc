#include <cmath>
#include <optional>

#include "model/mixers.h"
#include "runtime/memory_view.h"
#include "server/api.h"
#include "server/api_error.h"
#include "server/fields.h"
#include "server/memory_trace.h"

namespace lattice::server {
namespace {

// An integer of the query, or nothing when it is not there.
std::optional<int64_t> Parameter(const httplib::Request& request, const std::string& name, int64_t below) {
  if (!request.has_param(name)) return std::nullopt;
  const std::string text = request.get_param_value(name);
  int64_t value = 0;
  const bool digits =
      !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  if (digits) value = std::stoll(text);
  if (!digits || value >= below) throw ApiError(400, StrCat(name, " is not one of 0 to ", below - 1), name);
  return value;
}

OrderedJson HeadJson(std::span<const float> memory, int64_t slots, int64_t width) {
  const runtime::MemoryView view = runtime::ViewMemory(memory, slots, width);
  return {{"effective_rank", Rounded(view.effective_rank)},
          {"mean_similarity", Rounded(view.similarity)},
          {"norm", Rounded(std::sqrt(runtime::SquaredLength(memory)))}};
}

}  // namespace

OrderedJson Api::SessionJson(const std::string& id, const Conversation& conversation) const {
  const model::ModelConfig& config = served_.model->config();
  return {{"id", id},
          {"object", "session"},
          {"position", conversation.position()},
          {"bytes", conversation.Bytes()},
          {"model", served_.name},
          {"mixer", config.mixer},
          {"layers", config.layers},
          {"heads", config.heads},
          {"slots", model::FindMixer(config.mixer).attention ? 0 : config.Slots()}};
}

std::vector<TokenRecord> Api::Read(const std::shared_ptr<Conversation>& conversation,
                                   const std::vector<int32_t>& tokens, bool trace) {
  if (tokens.empty()) return {};
  std::vector<Task> tasks(1);
  tasks[0].conversation = conversation;
  tasks[0].prompt = tokens;
  tasks[0].trace = trace;
  std::vector<TokenRecord> records;
  const JobHandle job(Submit(std::move(tasks)));
  bool finished = false;
  while (const std::optional<Event> event = job->Next()) {
    records.insert(records.end(), event->tokens.begin(), event->tokens.end());
    finished |= event->reason != nullptr;
  }
  if (!finished) throw ApiError(503, "the request was ended", "", "cancelled");
  // Without a trace, and for a transformer, the engine tells nothing about what it reads.
  records.resize(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    records[i].id = tokens[i];
    records[i].prompt = false;
  }
  return records;
}

void Api::CreateSession(const Call& call) {
  Fields fields(call.request.body);
  std::vector<int32_t> tokens;
  if (const nlohmann::json* prompt = fields.Find("prompt")) {
    const RequestLimits& limits = limits_.request;
    tokens = prompt->is_string() ? TokensOf(prompt->get<std::string>(), false)
                                 : fields.Ids(*prompt, "prompt", limits.vocabulary, limits.prompt_tokens);
  }
  fields.Finish();
  const SessionStore::Lease lease = sessions_.Add(Conversation(served_.model));
  try {
    Read(lease.shared(), tokens, false);
  } catch (const ApiError&) {
    sessions_.Remove(lease.id());
    throw;
  }
  Reply(call, SessionJson(lease.id(), lease.conversation()), 201);
}

void Api::ShowSession(const Call& call) {
  const SessionStore::Lease lease = sessions_.Borrow(call.id);
  Reply(call, SessionJson(lease.id(), lease.conversation()));
}

void Api::DeleteSession(const Call& call) {
  sessions_.Remove(call.id);
  Reply(call, {{"id", call.id}, {"object", "session"}, {"deleted", true}});
}

void Api::AppendToSession(const Call& call) {
  Fields fields(call.request.body);
  const RequestLimits& limits = limits_.request;
  const nlohmann::json* ids = fields.Find("tokens");
  const nlohmann::json* text = fields.Find("text");
  if ((ids == nullptr) == (text == nullptr))
    throw ApiError(400, "expected either text or tokens to append", "text");
  std::vector<int32_t> tokens = ids != nullptr
                                    ? fields.Ids(*ids, "tokens", limits.vocabulary, limits.prompt_tokens)
                                    : TokensOf(fields.String("text", ""), false);
  const bool trace = fields.Bool("trace", false);
  fields.Finish();
  const SessionStore::Lease lease = sessions_.Borrow(call.id);
  sessions_.CheckRoom(lease.conversation(), static_cast<int64_t>(tokens.size()));
  const std::vector<TokenRecord> records = Read(lease.shared(), tokens, trace);
  OrderedJson body = SessionJson(lease.id(), lease.conversation());
  body["tokens"] = TokenList(served_, records);
  Reply(call, body);
}

void Api::ForkSession(const Call& call) {
  Fields(call.request.body).Finish();
  const SessionStore::Lease lease = sessions_.Borrow(call.id);
  const SessionStore::Lease fork = sessions_.Add(lease.conversation().Fork());
  Reply(call, SessionJson(fork.id(), fork.conversation()), 201);
}

void Api::RewindSession(const Call& call) {
  Fields fields(call.request.body);
  const int64_t position = fields.Integer("position", -1, INT64_MIN, INT64_MAX);
  fields.Finish();
  const SessionStore::Lease lease = sessions_.Borrow(call.id);
  Conversation& now = lease.conversation();
  if (position < now.base || position > now.position()) {
    throw ApiError(400,
                   StrCat("position ", position, " is not known; this session can go to ", now.base,
                          " up to ", now.position()),
                   "position");
  }
  if (position != now.position()) {
    const auto then = std::make_shared<Conversation>(served_.model);
    then->base = now.base;
    then->base_state = now.base_state;
    if (now.base > 0) then->session.Rewind(now.base_state);
    Read(then, {now.tokens.begin(), now.tokens.begin() + (position - now.base)}, false);
    now = std::move(*then);
  }
  Reply(call, SessionJson(lease.id(), now));
}

void Api::SaveState(const Call& call) {
  const SessionStore::Lease lease = sessions_.Borrow(call.id);
  call.response.set_content(lease.conversation().session.Serialize(), "application/octet-stream");
}

void Api::LoadState(const Call& call) {
  const SessionStore::Lease lease = sessions_.Borrow(call.id);
  std::optional<Conversation> loaded;
  try {
    loaded.emplace(runtime::Session::Deserialize(served_.model, call.request.body, "the state"));
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "state", "invalid_state");
  }
  loaded->base = loaded->position();
  if (loaded->base > 0) loaded->base_state = loaded->session.Checkpoint();
  lease.conversation() = std::move(*loaded);
  Reply(call, SessionJson(lease.id(), lease.conversation()));
}

void Api::ShowMemory(const Call& call) {
  const model::ModelConfig& config = served_.model->config();
  if (model::FindMixer(config.mixer).attention)
    throw ApiError(400, "this model is a transformer: it keeps every token and has no memory to show", "",
                   "no_memory");
  const std::optional<int64_t> layer = Parameter(call.request, "layer", config.layers);
  const std::optional<int64_t> head = Parameter(call.request, "head", config.heads);
  if (layer.has_value() != head.has_value())
    throw ApiError(400, "layer and head belong together", layer ? "head" : "layer");
  const SessionStore::Lease lease = sessions_.Borrow(call.id);
  const runtime::Session& session = lease.conversation().session;
  const int64_t slots = config.Slots(), width = config.HeadDim();
  if (!layer) {
    OrderedJson layers = OrderedJson::array();
    for (int64_t l = 0; l < config.layers; ++l) {
      layers.push_back(OrderedJson::array());
      for (int64_t h = 0; h < config.heads; ++h)
        layers.back().push_back(HeadJson(session.Memory(l, h), slots, width));
    }
    return Reply(call, {{"layers", std::move(layers)}});
  }
  const runtime::MemoryView view = runtime::ViewMemory(session.Memory(*layer, *head), slots, width);
  OrderedJson norms = OrderedJson::array(), similarity = OrderedJson::array();
  for (size_t i = 0; i < view.lengths.size(); ++i) {
    norms.push_back(Rounded(view.lengths[i]));
    similarity.push_back(OrderedJson::array());
    for (size_t j = 0; j < view.lengths.size(); ++j)
      similarity.back().push_back(Rounded(view.cosines[i * view.lengths.size() + j]));
  }
  Reply(call, {{"layer", *layer},
               {"head", *head},
               {"slots", slots},
               {"norms", std::move(norms)},
               {"similarity", std::move(similarity)},
               {"effective_rank", Rounded(view.effective_rank)}});
}

}  // namespace lattice::server
