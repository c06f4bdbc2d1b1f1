// The answers to completion requests, as JSON objects of OpenAI's API.
#ifndef LATTICE_SERVER_API_COMPLETION_RESPONSE_H_
#define LATTICE_SERVER_API_COMPLETION_RESPONSE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "server/api/completion_request.h"
#include "server/engine/job.h"
#include "server/engine/served_model.h"

namespace lattice::server {

using OrderedJson = nlohmann::ordered_json;

// The JSON text in one line; invalid UTF-8 is replaced.
std::string DumpJson(const OrderedJson& value);

// <|endoftext|>, <s> or </s>, or <id> for any other id without text.
std::string SpecialName(const text::Tokenizer& tokenizer, int32_t id);

// A readable form of a token: its text, or bytes:\xNN if it is only a part of a character, or its SpecialName
// if it has no text.
std::string TokenText(const text::Tokenizer& tokenizer, int32_t id);

// Tokens and what they did to the memory: [{"id", "text", "prompt"?, "memory"?: {"write", "novelty"}}].
OrderedJson TokenList(const ServedModel& served, std::span<const TokenRecord> tokens);

struct Usage {
  int64_t prompt_tokens = 0, cached_tokens = 0, chosen_tokens = 0;
};

// Builds the answer to one request from its events, whole or in chunks.
class CompletionResponse {
 public:
  // `prompts` are the tokens of the prompts, for echo. All references must outlive the object.
  CompletionResponse(const ServedModel& served, const CompletionRequest& request,
                     std::span<const std::vector<int32_t>> prompts);

  // The chunks of an event; none when nothing can be shown yet.
  std::vector<OrderedJson> Chunks(const Event& event);
  // The final chunk, with the usage, for clients that ask for it.
  OrderedJson UsageChunk() const;
  // The first chunk of each choice of a chat, which names the role.
  std::vector<OrderedJson> FirstChunks() const;

  // For a whole answer: call Add for all events, then Whole.
  void Add(const Event& event);
  OrderedJson Whole() const;

 private:
  struct Choice {
    std::string text;
    std::vector<TokenRecord> tokens;
    const char* reason = nullptr;
    int64_t offset = 0;  // characters sent so far, for text_offset
    bool started = false;
  };

  OrderedJson Envelope(const char* object) const;
  OrderedJson Logprobs(std::span<const TokenRecord> tokens, int64_t& offset) const;
  OrderedJson ChatLogprobs(std::span<const TokenRecord> tokens) const;
  OrderedJson UsageJson() const;
  // The text of an event as it is shown: with `echo`, the first one starts with the prompt.
  std::string ShownText(const Event& event, Choice& choice) const;
  std::vector<TokenRecord> ShownTokens(const Event& event, Choice& choice) const;

  const ServedModel& served_;
  const CompletionRequest& request_;
  std::span<const std::vector<int32_t>> prompts_;
  const std::string id_;
  const int64_t created_;  // seconds since 1970
  std::vector<Choice> choices_;
  Usage usage_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_COMPLETION_RESPONSE_H_
