// Builds the JSON of completions, whole or chunk by chunk, from the events of a job.
#include "server/api/completion_response.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "server/engine/random_id.h"
#include "text/base64.h"
#include "text/documents.h"
#include "text/utf8.h"

namespace lattice::server {
namespace {

// The number of UTF-8 characters that begin in these bytes.
int64_t CharactersIn(const std::string& bytes) {
  return std::count_if(bytes.begin(), bytes.end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

OrderedJson MemoryJson(const TokenMemory& memory, int64_t heads) {
  OrderedJson novelty = OrderedJson::array();
  for (size_t at = 0; at < memory.novelty.size(); at += static_cast<size_t>(heads)) {
    OrderedJson row = OrderedJson::array();
    for (size_t head = 0; head < static_cast<size_t>(heads); ++head)
      row.push_back(Rounded(memory.novelty[at + head]));
    novelty.push_back(std::move(row));
  }
  return {{"write", text::Base64(memory.write)}, {"novelty", std::move(novelty)}};
}

}  // namespace

std::string DumpJson(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string SpecialName(const text::Tokenizer& tokenizer, int32_t id) {
  for (const text::SpecialToken& token : tokenizer.special_tokens()) {
    if (token.id == id) return token.text;
  }
  const text::SpecialIds& special = tokenizer.special();
  if (id == special.eot) return std::string(text::kEndOfText);
  if (id == special.bos) return "<s>";
  return id == special.eos ? "</s>" : StrCat("<", id, ">");
}

std::string TokenText(const text::Tokenizer& tokenizer, int32_t id) {
  if (id >= tokenizer.vocab_size()) return StrCat("<", id, ">");
  std::string bytes;
  tokenizer.DecodeTo(id, false, bytes);
  if (bytes.empty()) return SpecialName(tokenizer, id);
  if (text::CountInvalidUtf8(bytes) == 0 && text::IncompleteTail(bytes) == 0) return bytes;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string shown = "bytes:";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    shown += {'\\', 'x', kDigits[value >> 4], kDigits[value & 15]};
  }
  return shown;
}

OrderedJson TokenList(const ServedModel& served, std::span<const TokenRecord> tokens) {
  OrderedJson out = OrderedJson::array();
  for (const TokenRecord& token : tokens) {
    OrderedJson item = {{"id", token.id}, {"text", TokenText(*served.tokenizer, token.id)}};
    if (token.prompt) item["prompt"] = true;
    if (token.memory) item["memory"] = MemoryJson(*token.memory, served.model->config().heads);
    out.push_back(std::move(item));
  }
  return out;
}

CompletionResponse::CompletionResponse(const ServedModel& served, const CompletionRequest& request,
                                       std::span<const std::vector<int32_t>> prompts)
    : served_(served),
      request_(request),
      prompts_(prompts),
      id_(RandomId(request.chat ? "chatcmpl-" : "cmpl-")),
      created_(std::time(nullptr)),
      choices_(prompts.size() * static_cast<size_t>(request.n)) {}

OrderedJson CompletionResponse::Envelope(const char* object) const {
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", served_.name}};
}

std::string CompletionResponse::ShownText(const Event& event, Choice& choice) const {
  const auto& prompt = prompts_[static_cast<size_t>(event.task) / static_cast<size_t>(request_.n)];
  std::string shown = event.text;
  if (request_.chat && !choice.started) shown.erase(0, shown.find_first_not_of(" \t\n"));
  if (request_.echo && !choice.started)
    shown = text::ReplaceInvalidUtf8(served_.tokenizer->Decode(prompt)) + shown;
  // The leading space of a chat's answer is removed, and may span several events.
  choice.started = choice.started || !request_.chat || !shown.empty();
  return shown;
}

std::vector<TokenRecord> CompletionResponse::ShownTokens(const Event& event, Choice&) const {
  std::vector<TokenRecord> out;
  for (const TokenRecord& token : event.tokens) {
    if (!token.prompt || request_.echo) out.push_back(token);
  }
  return out;
}

OrderedJson CompletionResponse::Logprobs(std::span<const TokenRecord> tokens, int64_t& offset) const {
  if (request_.logprobs < 0) return nullptr;
  OrderedJson texts = OrderedJson::array(), own = OrderedJson::array(), top = OrderedJson::array(),
              offsets = OrderedJson::array();
  for (const TokenRecord& token : tokens) {
    texts.push_back(TokenText(*served_.tokenizer, token.id));
    own.push_back(token.logprob ? OrderedJson(*token.logprob) : OrderedJson());
    OrderedJson likely = OrderedJson::object();
    for (const runtime::TokenLogProb& each : token.top)
      likely[TokenText(*served_.tokenizer, each.id)] = each.logprob;
    if (token.logprob && !token.top.empty()) likely[texts.back().get<std::string>()] = *token.logprob;
    top.push_back(likely.empty() ? OrderedJson() : std::move(likely));
    offsets.push_back(offset);
    std::string bytes;
    if (token.id < served_.tokenizer->vocab_size()) served_.tokenizer->DecodeTo(token.id, offset == 0, bytes);
    offset += CharactersIn(bytes);
  }
  return {{"tokens", texts}, {"token_logprobs", own}, {"top_logprobs", top}, {"text_offset", offsets}};
}

OrderedJson CompletionResponse::ChatLogprobs(std::span<const TokenRecord> tokens) const {
  if (request_.logprobs < 0) return nullptr;
  const auto entry = [&](int32_t id, double logprob) {
    std::string bytes;
    if (id < served_.tokenizer->vocab_size()) served_.tokenizer->DecodeTo(id, false, bytes);
    std::vector<int> values;
    for (const char byte : bytes) values.push_back(static_cast<unsigned char>(byte));
    return OrderedJson{{"token", TokenText(*served_.tokenizer, id)}, {"logprob", logprob}, {"bytes", values}};
  };
  OrderedJson content = OrderedJson::array();
  for (const TokenRecord& token : tokens) {
    OrderedJson item = entry(token.id, token.logprob.value_or(0));
    item["top_logprobs"] = OrderedJson::array();
    for (const runtime::TokenLogProb& each : token.top)
      item["top_logprobs"].push_back(entry(each.id, each.logprob));
    content.push_back(std::move(item));
  }
  return {{"content", std::move(content)}};
}

OrderedJson CompletionResponse::UsageJson() const {
  return {{"prompt_tokens", usage_.prompt_tokens},
          {"completion_tokens", usage_.chosen_tokens},
          {"total_tokens", usage_.prompt_tokens + usage_.chosen_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage_.cached_tokens}}}};
}

std::vector<OrderedJson> CompletionResponse::FirstChunks() const {
  std::vector<OrderedJson> out;
  for (size_t i = 0; request_.chat && i < choices_.size(); ++i) {
    out.push_back(Envelope("chat.completion.chunk"));
    out.back()["choices"] = {{{"index", i},
                              {"delta", {{"role", "assistant"}, {"content", ""}}},
                              {"logprobs", nullptr},
                              {"finish_reason", nullptr}}};
  }
  return out;
}

std::vector<OrderedJson> CompletionResponse::Chunks(const Event& event) {
  Add(event);
  Choice& choice = choices_[static_cast<size_t>(event.task)];
  const std::string text = std::exchange(choice.text, {});
  const std::vector<TokenRecord> tokens = std::exchange(choice.tokens, {});
  const bool worth = !text.empty() || event.reason != nullptr || (request_.trace && !event.tokens.empty()) ||
                     (request_.logprobs >= 0 && !tokens.empty());
  if (!worth) return {};
  OrderedJson item = {{"index", event.task}};
  if (request_.chat) {
    item["delta"] = text.empty() ? OrderedJson::object() : OrderedJson{{"content", text}};
    item["logprobs"] = tokens.empty() ? OrderedJson() : ChatLogprobs(tokens);
  } else {
    item["text"] = text;
    item["logprobs"] = tokens.empty() ? OrderedJson() : Logprobs(tokens, choice.offset);
  }
  item["finish_reason"] = event.reason == nullptr ? OrderedJson() : OrderedJson(event.reason);
  if (request_.trace && !event.tokens.empty()) item["tokens"] = TokenList(served_, event.tokens);
  OrderedJson chunk = Envelope(request_.chat ? "chat.completion.chunk" : "text_completion");
  chunk["choices"] = OrderedJson::array({std::move(item)});
  if (request_.include_usage) chunk["usage"] = nullptr;
  return {std::move(chunk)};
}

OrderedJson CompletionResponse::UsageChunk() const {
  OrderedJson chunk = Envelope(request_.chat ? "chat.completion.chunk" : "text_completion");
  chunk["choices"] = OrderedJson::array();
  chunk["usage"] = UsageJson();
  return chunk;
}

void CompletionResponse::Add(const Event& event) {
  Choice& choice = choices_[static_cast<size_t>(event.task)];
  choice.text += ShownText(event, choice);
  const bool kept = request_.logprobs >= 0 || request_.trace;
  for (TokenRecord& token : kept ? ShownTokens(event, choice) : std::vector<TokenRecord>())
    choice.tokens.push_back(std::move(token));
  if (event.reason == nullptr) return;
  choice.reason = event.reason;
  usage_.chosen_tokens += event.chosen_tokens;
  if (event.task % request_.n != 0) return;
  usage_.prompt_tokens += event.prompt_tokens;
  usage_.cached_tokens += event.cached_tokens;
}

OrderedJson CompletionResponse::Whole() const {
  OrderedJson out = Envelope(request_.chat ? "chat.completion" : "text_completion");
  out["choices"] = OrderedJson::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    OrderedJson item = {{"index", i}};
    if (request_.chat) {
      item["message"] = {{"role", "assistant"}, {"content", choice.text}};
      item["logprobs"] = ChatLogprobs(choice.tokens);
    } else {
      int64_t offset = 0;
      item["text"] = choice.text;
      item["logprobs"] = Logprobs(choice.tokens, offset);
    }
    item["finish_reason"] = choice.reason == nullptr ? OrderedJson() : OrderedJson(choice.reason);
    if (request_.trace) item["tokens"] = TokenList(served_, choice.tokens);
    out["choices"].push_back(std::move(item));
  }
  out["usage"] = UsageJson();
  return out;
}

}  // namespace lattice::server
