// The table of routes, and the handlers that need no computation: models, tokenizer, health, metrics and the
// page.
#include "server/api/api.h"

#include <algorithm>
#include <array>
#include <optional>

#include "server/api/embedded_files.h"
#include "server/api/fields.h"
#include "server/api/prompts.h"
#include "server/api/session_json.h"
#include "server/engine/api_error.h"
#include "text/utf8.h"

namespace lattice::server {

Api::Api(const ApiContext& context, const ApiLimits& limits)
    : served_(context.served),
      scheduler_(context.scheduler),
      sessions_(context.sessions),
      cache_(context.cache),
      metrics_(context.metrics),
      workers_(context.workers),
      store_workers_(context.store_workers),
      store_waiting_(context.store_waiting),
      budget_(context.budget),
      seal_(context.seal),
      accounts_(context.accounts),
      limits_(limits),
      cost_(context.served) {}

void Api::Handle(Call& call) {
  const Route& route = call.route();
  const auto handle = [this, &call, &route] {
    if (route.handle != nullptr) {
      (this->*route.handle)(call);
    } else {
      (this->*route.show)(call);
    }
  };
  if (HasStore() && route.waits) return call.ContinueAtStore(handle);
  handle();
}

void Api::PostToStore(const std::shared_ptr<http::Work>& work) {
  if (!store_workers_.Request(work, store_waiting_)) {
    ++metrics_.rejected;
    throw ApiError(503, "too many requests wait for the store of sessions; try again in a moment", "",
                   "overloaded");
  }
}

Clock::time_point Api::DeadlineOf(const Call& call) const {
  const Clock::time_point latest = Clock::now() + limits_.job;
  const std::optional<std::chrono::milliseconds> timeout = call.Timeout();
  return timeout ? std::min(latest, call.arrived() + *timeout) : latest;
}

void Api::CheckQuota(const Call& call) const {
  const std::chrono::seconds wait = accounts_.WaitFor(call.account(), Clock::now());
  if (wait.count() == 0) return;
  ++metrics_.over_quota;
  throw ApiError(429,
                 StrCat("this key has used its ", call.account().tokens_per_minute, " tokens per minute"), "",
                 "token_quota")
      .RetryIn(wait.count());
}

void Reply(Call& call, const OrderedJson& body, int status) {
  call.Answer(MakeResponse(status, "application/json", DumpJson(body)));
}

void Api::Models(Call& call) const {
  const OrderedJson model = ModelJson(served_);
  if (!call.id().empty()) {
    if (call.id() != served_.name)
      throw ApiError(404, StrCat("there is no such model here; this server has \"", served_.name, "\""),
                     "model", "model_not_found");
    return Reply(call, model);
  }
  Reply(call, {{"object", "list"}, {"data", OrderedJson::array({model})}});
}

// "prompt" and add_special_tokens are the fields that lm-evaluation-harness sends. In "prompt" it also asks
// for the id of a special token by the name that TokenizerInfo returns; "text" is always plain text.
void Api::Tokenize(Call& call) const {
  Fields fields(call.body());
  const bool named_text = fields.Find("text") != nullptr;
  if (named_text == (fields.Find("prompt") != nullptr))
    throw ApiError(400, "expected a string as text (or as prompt)", "text");
  const std::string text = fields.String(named_text ? "text" : "prompt", "");
  std::vector<int32_t> tokens = EncodedText(served_, text, named_text ? "text" : "prompt");
  const text::SpecialIds& special = served_.tokenizer->special();
  for (const int32_t id : {special.Begin(), special.End()}) {
    if (!named_text && id >= 0 && text == SpecialName(*served_.tokenizer, id)) tokens = {id};
  }
  fields.Neutral("add_special_tokens", {false});
  fields.Finish();
  // Written by hand: as JSON values the tokens would take sixteen times the memory of this string.
  std::string body = "{\"tokens\":[";
  for (const int32_t token : tokens) body.append(std::to_string(token)).append(1, ',');
  if (!tokens.empty()) body.pop_back();
  call.Answer(MakeResponse(200, "application/json", body + StrCat("],\"count\":", tokens.size(), "}")));
}

void Api::TokenizerInfo(Call& call) const {
  const text::SpecialIds& special = served_.tokenizer->special();
  const auto number = [](int32_t id) { return id < 0 ? OrderedJson() : OrderedJson(id); };
  const auto name = [&](int32_t id) {
    return id < 0 ? OrderedJson() : OrderedJson(SpecialName(*served_.tokenizer, id));
  };
  Reply(call, {{"tokenizer_class", served_.tokenizer->kind()},
               {"vocabulary", served_.tokenizer->vocab_size()},
               {"eot_token_id", special.eot},
               {"bos_token", name(special.Begin())},
               {"bos_token_id", number(special.Begin())},
               {"eos_token", name(special.End())},
               {"eos_token_id", number(special.End())},
               {"pad_token", nullptr},
               {"chat_template",
                served_.chat_template ? OrderedJson(served_.chat_template->source()) : OrderedJson()}});
}

void Api::Detokenize(Call& call) const {
  Fields fields(call.body());
  const nlohmann::json* ids = fields.Find("tokens");
  if (ids == nullptr) throw ApiError(400, "tokens is missing; expected a list of token ids", "tokens");
  const std::vector<int32_t> tokens =
      fields.Ids(*ids, "tokens", limits_.request.vocabulary, limits_.request.prompt_tokens);
  fields.Finish();
  const std::string text = text::ReplaceInvalidUtf8(served_.tokenizer->Decode(tokens));
  Reply(call, {{"text", text}, {"prompt", text}});
}

void Api::Health(Call& call) const { Reply(call, {{"status", "ok"}}); }

void Api::Ready(Call& call) const {
  std::string status = draining_ ? "draining" : "ready";
  if (HasStore() && !draining_) {
    try {
      sessions_.keeping().store->Ping();
    } catch (const store::StoreError&) {
      status = "store_unreachable";
    }
  }
  Reply(call, {{"status", status}}, status == "ready" ? 200 : 503);
}

void Api::PrometheusMetrics(Call& call) const {
  std::string out = metrics_.AnswersText();
  const auto counter = [&](const char* name, const char* help, int64_t value) {
    out += MetricText(name, "counter", help, value);
  };
  const auto gauge = [&](const char* name, const char* help, int64_t value) {
    out += MetricText(name, "gauge", help, value);
  };
  counter("lattice_prompt_tokens_total", "Tokens of prompts that were computed.", metrics_.prompt_tokens);
  counter("lattice_cached_tokens_total", "Tokens of prompts that the prefix cache knew.",
          metrics_.cached_tokens);
  counter("lattice_generated_tokens_total", "Tokens that were chosen.", metrics_.chosen_tokens);
  counter("lattice_steps_total", "Batches that were computed.", metrics_.steps);
  counter("lattice_rows_total", "Tokens in all batches.", metrics_.rows);
  counter("lattice_rejected_total", "Requests refused because the queue was full.", metrics_.rejected);
  counter("lattice_disconnected_total", "Requests whose client hung up.", metrics_.disconnected);
  counter("lattice_expired_total", "Requests that took too long.", metrics_.expired);
  counter("lattice_over_quota_total", "Requests refused because their key had used up its quota.",
          metrics_.over_quota);
  counter("lattice_log_lines_dropped_total", "Lines of the access log that could not be written.",
          metrics_.log_lines_dropped);
  counter("lattice_refused_connections_total", "Connections there was no room for.",
          metrics_.refused_connections);
  counter("lattice_dropped_connections_total", "Connections that made room for others.",
          metrics_.dropped_connections);
  gauge("lattice_bytes_in_flight", "Bytes of requests and answers on their way.", budget_.Used());
  gauge("lattice_connections", "Open connections.", metrics_.connections);
  gauge("lattice_running_sequences", "Sequences in the batch.", metrics_.running);
  gauge("lattice_waiting_sequences", "Sequences in the queue.", metrics_.waiting);
  gauge("lattice_sessions", "Sessions kept.", sessions_.Count());
  gauge("lattice_session_bytes", "Bytes of the sessions kept.", sessions_.Bytes());
  gauge("lattice_prefix_cache_bytes", "Bytes of the prefix cache.", cache_.Bytes());
  gauge("lattice_prefix_cache_entries", "States in the prefix cache.", cache_.Entries());
  counter("lattice_prefix_cache_hits_total", "Prompts with a beginning that was known.", cache_.Hits());
  counter("lattice_prefix_cache_lookups_total", "Prompts that were looked up.", cache_.Lookups());
  out += metrics_.first_token.Text("lattice_first_token_seconds", "From a request to its first token.");
  out +=
      metrics_.between_tokens.Text("lattice_between_tokens_seconds", "From one token of a text to the next.");
  out += metrics_.queue_seconds.Text("lattice_queue_seconds", "From a request to its place in the batch.");
  if (HasStore()) AddStoreMetrics(out);
  call.Answer(MakeResponse(200, "text/plain; version=0.0.4", std::move(out)));
}

void Api::AddStoreMetrics(std::string& out) const {
  const auto counter = [&](const char* name, const char* help, int64_t value) {
    out += MetricText(name, "counter", help, value);
  };
  counter("lattice_store_reads_total", "Sessions asked of the store.", metrics_.store_reads);
  counter("lattice_store_writes_total", "Sessions written to the store.", metrics_.store_writes);
  counter("lattice_store_written_bytes_total", "Bytes of them.", metrics_.store_written_bytes);
  counter("lattice_store_failures_total", "Calls of the store that failed.", metrics_.store_failures);
  counter("lattice_store_lost_total", "Writes refused because another server had the session.",
          metrics_.store_lost);
  counter("lattice_store_conflicts_total", "Requests for sessions that another server used.",
          metrics_.store_conflicts);
  counter("lattice_sessions_left_memory_total", "Sessions that only the store has since.",
          metrics_.sessions_left_memory);
  counter("lattice_replayed_total", "Requests answered by what an earlier one with their key was answered.",
          metrics_.replayed);
  out += metrics_.store_seconds.Text("lattice_store_seconds", "For one call of the store.");
  try {
    const store::StoreFigures figures = sessions_.keeping().store->Figures();
    out += MetricText("lattice_store_sessions", "gauge", "Sessions in the store.", figures.sessions);
    if (figures.bytes >= 0)
      out += MetricText("lattice_store_bytes", "gauge", "Bytes of the sessions in the store.", figures.bytes);
  } catch (const store::StoreError&) {
    ++metrics_.store_failures;
  }
}

void Api::OpenApi(Call& call) const {
  call.Answer(MakeResponse(200, "application/json", std::string(OpenApiJson())));
}

void Api::Page(Call& call) const {
  const std::string name = call.id().empty() ? "index.html" : call.id();
  const EmbeddedFile* file = FindEmbedded(name);
  if (file == nullptr) throw ApiError(404, "the page has no such file", "", "not_found");
  http::Response response = MakeResponse(200, ContentType(name), std::string(file->content));
  response.fields.insert(response.fields.end(),
                         {{"Content-Security-Policy",
                           "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
                           "form-action 'self'; frame-ancestors 'none'"},
                          {"X-Frame-Options", "DENY"},
                          {"Referrer-Policy", "no-referrer"},
                          {"Cross-Origin-Opener-Policy", "same-origin"}});
  call.Answer(std::move(response));
}

std::span<const Route> PageRoutes() {
  static constexpr std::array kRoutes = {
      Route{"GET", "/", nullptr, &Api::Page, false, "page"},
      Route{"GET", "/page/{id}", nullptr, &Api::Page, false, "page"},
  };
  return kRoutes;
}

std::span<const Route> Routes() {
  static constexpr std::array kRoutes = {
      Route{"GET", "/v1/models", nullptr, &Api::Models},
      Route{"GET", "/v1/models/{id}", nullptr, &Api::Models},
      Route{"POST", "/v1/completions", &Api::Completions},
      Route{"POST", "/v1/chat/completions", &Api::Chat},
      Route{"POST", "/v1/embeddings", &Api::Embeddings},
      Route{"POST", "/v1/sessions", &Api::CreateSession, nullptr, true, "", true},
      Route{"GET", "/v1/sessions/{id}", &Api::ShowSession, nullptr, true, "", true},
      Route{"DELETE", "/v1/sessions/{id}", &Api::DeleteSession, nullptr, true, "", true},
      Route{"POST", "/v1/sessions/{id}/append", &Api::AppendToSession, nullptr, true, "", true},
      Route{"POST", "/v1/sessions/{id}/fork", &Api::ForkSession, nullptr, true, "", true},
      Route{"POST", "/v1/sessions/{id}/rewind", &Api::RewindSession, nullptr, true, "", true},
      Route{"GET", "/v1/sessions/{id}/state", &Api::SaveState, nullptr, true, "", true},
      Route{"PUT", "/v1/sessions/{id}/state", &Api::LoadState, nullptr, true, "", true},
      Route{"GET", "/v1/sessions/{id}/memory", &Api::ShowMemory, nullptr, true, "", true},
      Route{"POST", "/tokenize", nullptr, &Api::Tokenize},
      Route{"GET", "/tokenizer_info", nullptr, &Api::TokenizerInfo},
      Route{"POST", "/detokenize", nullptr, &Api::Detokenize},
      Route{"GET", "/health", nullptr, &Api::Health, false},
      Route{"GET", "/health/live", nullptr, &Api::Health, false},
      Route{"GET", "/health/ready", nullptr, &Api::Ready, false, "", true},
      Route{"GET", "/metrics", nullptr, &Api::PrometheusMetrics, true, "", true},
      Route{"GET", "/openapi.json", nullptr, &Api::OpenApi},
  };
  return kRoutes;
}

}  // namespace lattice::server
