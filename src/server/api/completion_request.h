// The bodies of /v1/completions and /v1/chat/completions as the server understands them.
#ifndef LATTICE_SERVER_API_COMPLETION_REQUEST_H_
#define LATTICE_SERVER_API_COMPLETION_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/sampler.h"

namespace lattice::server {

struct RequestLimits {
  int64_t prompt_tokens = 65536;
  int64_t max_tokens = 65536;
  int64_t choices = 128;  // prompts times n
  int64_t stops = 16;
  int64_t stop_bytes = 256;
  int64_t logprobs = 20;
  int64_t answer_bytes = int64_t{64} << 20;  // about what an answer that is not streamed may hold
  int32_t vocabulary = 0;                    // ids of prompts are below it
};

// Text or token ids.
using Prompt = std::variant<std::string, std::vector<int32_t>>;

struct CompletionRequest {
  std::string model;            // empty: whatever is served
  std::vector<Prompt> prompts;  // empty only with a session
  std::string session;          // its id; empty: none
  int64_t n = 1;
  int64_t max_tokens = 16;
  runtime::SamplerOptions sampler;  // its seed counts when has_seed
  bool has_seed = false;
  std::vector<std::string> stops;
  int64_t logprobs = -1;  // -1: none, else how many of the most likely tokens beside the chosen one
  bool echo = false, stream = false, include_usage = false, trace = false;
  bool chat = false;
};

// Both throw ApiError (400) that names the field, and nothing else.
CompletionRequest ParseCompletion(std::string_view body, const RequestLimits& limits);
// The messages become one prompt, with a stop text of its own: see ChatPrompt.
CompletionRequest ParseChat(std::string_view body, const RequestLimits& limits);

struct ChatMessage {
  std::string role, content;
};
// How a base model is shown a conversation:
//   SYSTEM <empty line> User: ... <newline> Assistant: ... <newline> User: ... <newline> Assistant:
std::string ChatPrompt(const std::vector<ChatMessage>& messages);
inline constexpr std::string_view kChatStop = "\nUser:";

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_COMPLETION_REQUEST_H_
