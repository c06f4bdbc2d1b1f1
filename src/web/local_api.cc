// Routes, sessions and streams of the page's model. What a request means, and what its answer looks like, is the
// server's code.
#include "web/local_api.h"

#include <array>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/error.h"
#include "runtime/engine.h"
#include "runtime/prefix_cache.h"
#include "server/api/completion_response.h"
#include "server/api/fields.h"
#include "server/api/path_pattern.h"
#include "server/api/prompts.h"
#include "server/api/session_json.h"
#include "server/engine/api_error.h"
#include "server/engine/job.h"
#include "server/engine/random_id.h"
#include "server/engine/sequence.h"
#include "server/engine/server_metrics.h"
#include "server/http/request_head.h"
#include "text/grammar/token_constraint.h"

namespace lattice::web {
namespace {

using server::ApiError;
using server::Conversation;
using server::OrderedJson;

// A page is to react within a moment, also while a long prompt is read.
constexpr int64_t kPromptStep = 32;
constexpr int64_t kCacheBytes = int64_t{32} << 20;
constexpr int64_t kMostSessions = 256;

}  // namespace

// Members of LocalApi::Parts, whose name other files know: no anonymous namespace.
namespace local {

// A session, and whether a stream writes to it.
struct Session {
  std::shared_ptr<Conversation> conversation;
  bool busy = false;
};

class NobodyWaits : public server::JobListener {
  void JobChanged() noexcept override {}
};

// One task and its events.
struct Running {
  Running(const server::SequenceContext& context, server::Task task)
      : job(std::make_shared<server::Job>(1, 0, server::Clock::time_point::max(),
                                          std::make_shared<NobodyWaits>())),
        sequence(context, std::move(task), 0, job) {}

  std::shared_ptr<server::Job> job;
  server::Sequence sequence;
};

// A completion that is streamed. The response refers to what stands above it.
struct Stream {
  Stream(const server::ServedModel& served, const server::SequenceContext& context,
         server::CompletionRequest asked, std::vector<std::vector<int32_t>> its_prompts, server::Task task)
      : request(std::move(asked)),
        prompts(std::move(its_prompts)),
        response(served, request, prompts),
        running(context, std::move(task)) {}

  const server::CompletionRequest request;
  const std::vector<std::vector<int32_t>> prompts;
  server::CompletionResponse response;
  Running running;
  bool begun = false;
};

}  // namespace local

namespace {

using local::Running;
using local::Session;
using local::Stream;

// A request that has found its route.
struct Request {
  const server::http::RequestHead& head;
  const std::string& id;  // the part of the path that matches {id}
  const std::string& body;
};

Answer Ok(const OrderedJson& body) { return {200, server::DumpJson(body)}; }

server::http::RequestHead HeadOf(std::string_view method, std::string_view target) {
  const std::string bytes = StrCat(method, " ", target, " HTTP/1.1\r\nHost: page\r\n\r\n");
  const auto parsed = server::http::ParseHead(bytes, {});
  if (const auto* head = std::get_if<server::http::ParsedHead>(&parsed)) return head->head;
  throw ApiError(400, StrCat("there is no such path: ", target));
}

// Turns what `answer` throws into an answer.
template <typename Make>
Answer Guarded(const Make& answer) noexcept {
  try {
    return answer();
  } catch (const ApiError& error) {
    return {error.status(), error.Body()};
  } catch (const std::bad_alloc&) {
    return {
        503,
        ApiError(503, "this browser gives the page no more memory; close branches, or load the page again")
            .Body()};
  } catch (const std::exception& error) {
    return {500, ApiError(500, error.what()).Body()};
  }
}

}  // namespace

struct LocalApi::Parts {
  explicit Parts(server::ServedModel model)
      : served(std::move(model)), tokens(*served.tokenizer), cache(kCacheBytes), engine(served.model, 1) {
    LimitToModel(served, limits);
    // A page has one user, who wants one text at a time.
    limits.choices = 1;
  }

  server::SequenceContext Context() { return {served, cache, metrics, tokens}; }

  Session& Find(const std::string& id) {
    const auto found = sessions.find(id);
    if (found == sessions.end()) throw ApiError(404, "there is no such session", "session", "not_found");
    return found->second;
  }
  Session& Free(const std::string& id) {
    Session& session = Find(id);
    if (session.busy) throw ApiError(409, "the session is in use by another request", "session", "conflict");
    return session;
  }
  OrderedJson Add(Conversation conversation) {
    if (static_cast<int64_t>(sessions.size()) >= kMostSessions)
      throw ApiError(429, "there are as many texts as the page keeps; close some", "session");
    const std::string id = server::RandomId("session-");
    const auto shared = std::make_shared<Conversation>(std::move(conversation));
    sessions[id] = {shared};
    return SessionJson(served, id, *shared);
  }

  // Computes one step; the task's events can be taken afterwards.
  void Step(Running& running) {
    try {
      const std::optional<runtime::Feed> feed = running.sequence.Plan(kPromptStep);
      if (!feed) return;
      engine.Run({&*feed, 1});
      running.sequence.Consume(engine.Logits(0));
    } catch (...) {
      running.sequence.Fail(std::current_exception());
      throw;
    }
  }
  // Reads tokens into a conversation.
  void Read(const std::shared_ptr<Conversation>& into, std::vector<int32_t> ids) {
    if (ids.empty()) return;
    server::Task task;
    task.conversation = into;
    task.prompt = std::move(ids);
    Running running(Context(), std::move(task));
    while (!running.sequence.done()) Step(running);
  }

  Answer Health(const Request& request);
  Answer Models(const Request& request);
  Answer Create(const Request& request);
  Answer Show(const Request& request);
  Answer Delete(const Request& request);
  Answer Append(const Request& request);
  Answer Fork(const Request& request);
  Answer Rewind(const Request& request);
  Answer Memory(const Request& request);
  server::CompletionRequest Parse(const std::string& path, const std::string& body) const;

  const server::ServedModel served;
  server::Metrics metrics;
  const text::grammar::TokenTable tokens;
  runtime::PrefixCache cache;
  runtime::Engine engine;
  server::RequestLimits limits;
  std::map<std::string, Session> sessions;
  std::map<int64_t, std::unique_ptr<Stream>> streams;
  int64_t opened = 0;
};

Answer LocalApi::Parts::Health(const Request&) { return Ok({{"status", "ok"}}); }

Answer LocalApi::Parts::Models(const Request&) {
  return Ok({{"object", "list"}, {"data", OrderedJson::array({ModelJson(served)})}});
}

Answer LocalApi::Parts::Create(const Request& request) {
  server::Fields(request.body).Finish();
  return Ok(Add(Conversation(served.model)));
}

Answer LocalApi::Parts::Show(const Request& request) {
  return Ok(SessionJson(served, request.id, *Free(request.id).conversation));
}

Answer LocalApi::Parts::Delete(const Request& request) {
  Find(request.id);
  sessions.erase(request.id);
  return Ok({{"id", request.id}, {"object", "session"}, {"deleted", true}});
}

Answer LocalApi::Parts::Append(const Request& request) {
  server::Fields fields(request.body);
  const nlohmann::json* const given = fields.Find("tokens");
  const std::shared_ptr<Conversation> conversation = Free(request.id).conversation;
  const bool fresh = conversation->position() == 0;
  std::vector<int32_t> ids = given != nullptr
                                 ? fields.Ids(*given, "tokens", limits.vocabulary, limits.prompt_tokens)
                                 : PromptTokens(served, limits, fields.String("text", ""), fresh);
  fields.Finish();
  std::vector<server::TokenRecord> records(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) records[i].id = ids[i];
  Read(conversation, std::move(ids));
  OrderedJson answer = SessionJson(served, request.id, *conversation);
  answer["tokens"] = TokenList(served, records);
  return Ok(answer);
}

Answer LocalApi::Parts::Fork(const Request& request) {
  server::Fields(request.body).Finish();
  return Ok(Add(Free(request.id).conversation->Fork()));
}

Answer LocalApi::Parts::Rewind(const Request& request) {
  server::Fields fields(request.body);
  const int64_t position = fields.Integer("position", -1, INT64_MIN, INT64_MAX);
  fields.Finish();
  Session& session = Free(request.id);
  const Conversation& now = *session.conversation;
  std::vector<int32_t> ids = now.TokensUpTo(position);
  if (ids.size() < now.tokens.size() || now.damaged) {
    const auto then = std::make_shared<Conversation>(now.AtBase());
    Read(then, std::move(ids));
    session.conversation = then;
  }
  return Ok(SessionJson(served, request.id, *session.conversation));
}

Answer LocalApi::Parts::Memory(const Request& request) {
  const server::MemoryQuery query(served.model->config(), request.head);
  return Ok(query.Answer(Free(request.id).conversation->session));
}

server::CompletionRequest LocalApi::Parts::Parse(const std::string& path, const std::string& body) const {
  if (path == "/v1/completions") return server::ParseCompletion(body, limits);
  if (path != "/v1/chat/completions") throw ApiError(404, StrCat("nothing is streamed at ", path));
  server::CompletionRequest request = server::ParseChat(body, limits);
  UseTemplate(served, request);
  return request;
}

LocalApi::LocalApi(server::ServedModel served) : parts_(std::make_unique<Parts>(std::move(served))) {}
LocalApi::~LocalApi() = default;

Answer LocalApi::Call(std::string_view method, std::string_view target, const std::string& body) noexcept {
  struct Route {
    std::string_view method, path;
    Answer (Parts::*answer)(const Request&);
  };
  static constexpr std::array kRoutes = {
      Route{"GET", "/health", &Parts::Health},
      Route{"GET", "/v1/models", &Parts::Models},
      Route{"POST", "/v1/sessions", &Parts::Create},
      Route{"GET", "/v1/sessions/{id}", &Parts::Show},
      Route{"DELETE", "/v1/sessions/{id}", &Parts::Delete},
      Route{"POST", "/v1/sessions/{id}/append", &Parts::Append},
      Route{"POST", "/v1/sessions/{id}/fork", &Parts::Fork},
      Route{"POST", "/v1/sessions/{id}/rewind", &Parts::Rewind},
      Route{"GET", "/v1/sessions/{id}/memory", &Parts::Memory},
  };
  return Guarded([&] {
    const server::http::RequestHead head = HeadOf(method, target);
    for (const Route& route : kRoutes) {
      const std::optional<std::string> id = server::MatchPath(route.path, head.path);
      if (id && route.method == method) return ((*parts_).*route.answer)({head, *id, body});
    }
    throw ApiError(404, StrCat("there is nothing at ", target), "", "not_found");
  });
}

Answer LocalApi::Open(std::string_view target, const std::string& body) noexcept {
  return Guarded([&] {
    server::CompletionRequest request = parts_->Parse(HeadOf("POST", target).path, body);
    Session* session = request.session.empty() ? nullptr : &parts_->Free(request.session);
    const std::shared_ptr<Conversation> conversation = session ? session->conversation : nullptr;
    auto prompts = PromptsOf(parts_->served, parts_->limits, request, conversation.get());
    server::Task task = std::move(TasksOf(parts_->served, request, prompts, conversation, 0).front());
    auto stream = std::make_unique<Stream>(parts_->served, parts_->Context(), std::move(request),
                                           std::move(prompts), std::move(task));
    const int64_t number = ++parts_->opened;
    parts_->streams[number] = std::move(stream);
    if (session != nullptr) session->busy = true;
    return Ok({{"stream", number}});
  });
}

Answer LocalApi::Next(int64_t number) noexcept {
  return Guarded([&] {
    const auto found = parts_->streams.find(number);
    if (found == parts_->streams.end()) throw ApiError(404, "there is no such stream", "", "not_found");
    Stream& stream = *found->second;
    OrderedJson chunks = OrderedJson::array();
    const auto add = [&](std::vector<OrderedJson> more) {
      for (OrderedJson& chunk : more) chunks.push_back(std::move(chunk));
    };
    if (!std::exchange(stream.begun, true)) add(stream.response.FirstChunks());
    parts_->Step(stream.running);
    while (const std::optional<server::Event> event = stream.running.job->Take())
      add(stream.response.Chunks(*event));
    const bool done = stream.running.sequence.done();
    if (done && stream.request.include_usage) chunks.push_back(stream.response.UsageChunk());
    return Ok({{"chunks", std::move(chunks)}, {"done", done}});
  });
}

void LocalApi::Close(int64_t number) noexcept {
  const auto found = parts_->streams.find(number);
  if (found == parts_->streams.end()) return;
  const auto session = parts_->sessions.find(found->second->request.session);
  if (session != parts_->sessions.end()) session->second.busy = false;
  parts_->streams.erase(found);
}

}  // namespace lattice::web
