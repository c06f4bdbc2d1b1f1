// Parses the bodies of /v1/completions and /v1/chat/completions.
#ifndef LATTICE_SERVER_API_COMPLETION_REQUEST_H_
#define LATTICE_SERVER_API_COMPLETION_REQUEST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/sampler.h"
#include "text/grammar/grammar.h"

namespace lattice::server {

struct RequestLimits {
  int64_t prompt_tokens = 65536;
  int64_t max_tokens = 65536;
  int64_t choices = 128;  // prompts times n
  int64_t stops = 16;
  int64_t stop_bytes = 256;
  int64_t logprobs = 20;
  int64_t biases = 1024;                     // entries of logit_bias
  int64_t schema_bytes = 64 << 10;           // of a JSON schema
  int64_t inputs = 128;                      // texts of one request for embeddings
  int64_t answer_bytes = int64_t{64} << 20;  // approximate size of an answer that is not streamed
  int32_t vocabulary = 0;                    // token ids of prompts must be below it
};

// Text or token ids.
using Prompt = std::variant<std::string, std::vector<int32_t>>;

struct ChatMessage {
  std::string role, content;
};

struct CompletionRequest {
  std::string model;            // empty: the model that is served
  std::vector<Prompt> prompts;  // empty only with a session
  std::string session;          // id of a session; empty: none
  int64_t n = 1;
  int64_t max_tokens = 16;
  runtime::SamplerOptions sampler;  // its seed is used only if has_seed
  bool has_seed = false;
  std::vector<std::string> stops;
  int64_t logprobs = -1;  // -1: none, else how many of the most likely tokens besides the sampled one
  bool echo = false, stream = false, include_usage = false, trace = false;
  bool chat = false;
  bool templated = false;                                 // the prompt is what a chat template has made
  std::vector<ChatMessage> messages;                      // of a chat
  std::shared_ptr<const text::grammar::Grammar> grammar;  // of response_format; null: the text is free
};

// Both throw nothing but ApiError (400), which names the field.
CompletionRequest ParseCompletion(std::string_view body, const RequestLimits& limits);
// Joins the messages into one prompt (see ChatPrompt) and adds the stop text kChatStop.
CompletionRequest ParseChat(std::string_view body, const RequestLimits& limits);

// The prompt that presents a chat to a base model:
//   SYSTEM <empty line> User: ... <newline> Assistant: ... <newline> User: ... <newline> Assistant:
std::string ChatPrompt(const std::vector<ChatMessage>& messages);
inline constexpr std::string_view kChatStop = "\nUser:";

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_COMPLETION_REQUEST_H_
