// /v1/sessions: create, append, fork, rewind, save, load and inspect sessions that stay on the server.
#include <algorithm>
#include <optional>

#include "server/api/api.h"
#include "server/api/computation.h"
#include "server/api/fields.h"
#include "server/api/idempotency.h"
#include "server/api/prompts.h"
#include "server/api/session_json.h"
#include "server/engine/api_error.h"

namespace lattice::server {
int64_t Api::GrownBytes(const Conversation& conversation, int64_t more) const {
  const int64_t base = conversation.base_state.empty() ? 0 : conversation.base_state.Bytes();
  return std::max(conversation.Bytes(), base + cost_.Bytes(conversation.position() + more));
}

// Tokens being read into a session.
class Api::ReadingComputation : public Computation {
 public:
  ReadingComputation(std::shared_ptr<Call> of, const ComputationContext& context, Reading reading,
                     http::ReservedBytes reserved)
      : Computation(std::move(of), context), reading_(std::move(reading)), reserved_(std::move(reserved)) {}

 protected:
  void OnEvent(Event event) override {
    if (event.midway) reading_->lease.StoreMidway(*event.midway);
    for (TokenRecord& token : event.tokens) records_.push_back(std::move(token));
  }
  void OnEnd() override {
    // Without a trace, and for a transformer, the engine reports no records of the tokens it reads.
    records_.resize(reading_->tokens.size());
    for (size_t i = 0; i < records_.size(); ++i) {
      records_[i].id = reading_->tokens[i];
      records_[i].prompt = false;
    }
    reading_->then(call(), reading_->lease, std::move(records_));
    reading_.reset();
    reserved_.Resize(0);
    call().Send();
  }
  void OnFailure(const std::exception_ptr& error) override {
    if (reading_ && reading_->undo) reading_->undo(reading_->lease);
    reading_.reset();
    call().SendError(error);
  }

 private:
  std::optional<Reading> reading_;
  std::vector<TokenRecord> records_;
  http::ReservedBytes reserved_;
};

void Api::Read(Call& call, Reading reading) {
  if (reading.tokens.empty()) return reading.then(call, reading.lease, {});
  const int64_t bytes = static_cast<int64_t>(reading.tokens.size()) * TokenBytes(-1, reading.trace);
  if (bytes > limits_.request.answer_bytes)
    throw ApiError(400, "the trace of so many tokens is too long for one answer; append fewer at a time",
                   "trace");
  std::vector<Task> tasks(1);
  tasks[0].conversation = reading.conversation;
  tasks[0].prompt = reading.tokens;
  tasks[0].trace = reading.trace;
  tasks[0].midway_tokens = reading.conversation == reading.lease.shared() ? MidwayTokens() : 0;
  const auto computation = std::make_shared<ReadingComputation>(call.shared_from_this(), SessionContext(),
                                                                std::move(reading), ReserveAnswer(bytes));
  computation->Start(scheduler_, std::move(tasks), DeadlineOf(call));
}

SessionStore::Lease Api::Borrow(Call& call, const std::string& id, bool damaged) {
  return sessions_.Borrow(id, call.account().name, damaged);
}

void Api::CreateSession(Call& call) {
  CheckQuota(call);
  Fields fields(call.body());
  std::vector<int32_t> tokens;
  if (const nlohmann::json* prompt = fields.Find("prompt")) {
    const RequestLimits& limits = limits_.request;
    tokens = prompt->is_string() ? PromptTokens(served_, limits, prompt->get<std::string>(), true)
                                 : fields.Ids(*prompt, "prompt", limits.vocabulary, limits.prompt_tokens);
  }
  fields.Finish();
  SessionStore::Lease lease =
      sessions_.Add(Conversation(served_.model), call.account().name, call.account().sessions);
  const std::string id = lease.id();
  const std::string owner = call.account().name;
  const auto undo = [this, owner](const SessionStore::Lease& of) { sessions_.Remove(of.id(), owner); };
  try {
    lease.Reserve(GrownBytes(lease.conversation(), static_cast<int64_t>(tokens.size())));
    auto conversation = lease.shared();
    Read(call, {std::move(lease), std::move(conversation), std::move(tokens), false,
                [this](Call& of, const SessionStore::Lease& made, const std::vector<TokenRecord>&) {
                  made.Change();
                  made.Commit();
                  Reply(of, SessionJson(served_, made.id(), made.conversation()), 201);
                },
                undo});
  } catch (...) {
    if (!HasStore()) sessions_.Remove(id, owner);  // with a store it is gone with its lease
    throw;
  }
}

void Api::ShowSession(Call& call) {
  const SessionStore::Lease lease = Borrow(call, call.id());
  Reply(call, SessionJson(served_, lease.id(), lease.conversation()));
}

void Api::DeleteSession(Call& call) {
  sessions_.Remove(call.id(), call.account().name);
  Reply(call, {{"id", call.id()}, {"object", "session"}, {"deleted", true}});
}

void Api::AppendToSession(Call& call) {
  CheckQuota(call);
  const IdempotencyKey key(call);
  Fields fields(call.body());
  const RequestLimits& limits = limits_.request;
  const nlohmann::json* ids = fields.Find("tokens");
  const nlohmann::json* text = fields.Find("text");
  if ((ids == nullptr) == (text == nullptr))
    throw ApiError(400, "expected either text or tokens to append", "text");
  std::vector<int32_t> tokens = ids != nullptr
                                    ? fields.Ids(*ids, "tokens", limits.vocabulary, limits.prompt_tokens)
                                    : PromptTokens(served_, limits, fields.String("text", ""), false);
  const bool trace = fields.Bool("trace", false);
  fields.Finish();
  SessionStore::Lease lease = Borrow(call, call.id());
  if (key.Replay(call, lease, false, metrics_)) return;
  if (text != nullptr && !tokens.empty() && lease.conversation().position() == 0) BeginText(served_, tokens);
  const auto more = static_cast<int64_t>(tokens.size());
  sessions_.CheckLength(lease.conversation(), more);
  lease.Reserve(GrownBytes(lease.conversation(), more) * (key.given() ? 2 : 1));
  lease.Change(key.given());
  auto conversation = lease.shared();
  Read(call, {std::move(lease), std::move(conversation), std::move(tokens), trace,
              [this, key](Call& of, const SessionStore::Lease& now, const std::vector<TokenRecord>& records) {
                OrderedJson body = SessionJson(served_, now.id(), now.conversation());
                body["tokens"] = TokenList(served_, records);
                const std::string answer = DumpJson(body);
                key.Remember(now, answer);
                now.Commit();
                of.Answer(MakeResponse(200, "application/json", answer));
              }});
}

void Api::ForkSession(Call& call) {
  Fields(call.body()).Finish();
  const SessionStore::Lease lease = Borrow(call, call.id());
  const SessionStore::Lease fork =
      sessions_.Add(lease.conversation().Fork(), call.account().name, call.account().sessions);
  fork.Change();
  fork.Commit();
  Reply(call, SessionJson(served_, fork.id(), fork.conversation()), 201);
}

void Api::RewindSession(Call& call) {
  Fields fields(call.body());
  const int64_t position = fields.Integer("position", -1, INT64_MIN, INT64_MAX);
  fields.Finish();
  SessionStore::Lease lease = Borrow(call, call.id(), true);
  Conversation& now = lease.conversation();
  std::vector<int32_t> tokens = now.TokensUpTo(position);
  if (tokens.size() == now.tokens.size() && !now.damaged)
    return Reply(call, SessionJson(served_, lease.id(), now));
  const auto then = std::make_shared<Conversation>(now.AtBase());
  // Old and new state are both in memory until the new one has been computed.
  lease.Reserve(now.Bytes() + GrownBytes(*then, position - now.base));
  Read(call, {std::move(lease), then, std::move(tokens), false,
              [this, then](Call& of, const SessionStore::Lease& held, const std::vector<TokenRecord>&) {
                held.Change();
                held.conversation() = std::move(*then);
                held.Commit();
                Reply(of, SessionJson(served_, held.id(), held.conversation()));
              }});
}

void Api::SaveState(Call& call) {
  const SessionStore::Lease lease = Borrow(call, call.id());
  call.Answer(
      MakeResponse(200, "application/octet-stream", lease.conversation().session.Serialize(seal_.key)));
}

void Api::LoadState(Call& call) {
  const SessionStore::Lease lease = Borrow(call, call.id(), true);
  std::optional<Conversation> loaded;
  try {
    loaded.emplace(runtime::Session::Deserialize(served_.model, call.body(), "the state",
                                                 seal_.trust_others ? std::string_view() : seal_.key));
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "state", "invalid_state");
  }
  loaded->loaded = true;
  loaded->base = loaded->position();
  loaded->base_state = loaded->session.Checkpoint();
  lease.Reserve(loaded->Bytes());
  lease.Change();
  lease.conversation() = std::move(*loaded);
  lease.Commit();
  Reply(call, SessionJson(served_, lease.id(), lease.conversation()));
}

void Api::ShowMemory(Call& call) {
  const MemoryQuery query(served_.model->config(), call.request.head);
  const SessionStore::Lease lease = Borrow(call, call.id());
  Reply(call, query.Answer(lease.conversation().session));
}

}  // namespace lattice::server
