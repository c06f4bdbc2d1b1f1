// The tokens and tasks of completion requests.
#include "server/api/prompts.h"

#include <algorithm>

#include "server/engine/api_error.h"
#include "server/engine/random_id.h"

namespace lattice::server {
namespace {

// The largest KV cache of one sequence of a transformer; it bounds the length of its texts.
constexpr int64_t kLargestCache = int64_t{256} << 20;

// Without a prompt, a session continues from the logits after its last token, which must be known.
void CheckContinues(const Conversation& conversation, const std::vector<int32_t>& prompt) {
  if (!prompt.empty() || !conversation.logits.empty()) return;
  if (conversation.tokens.empty())
    throw ApiError(400,
                   "the session's state was loaded, so its last token is not known; give a prompt to read",
                   "prompt");
  throw ApiError(400,
                 "the session's last request was ended before its prompt was read; give a prompt to read",
                 "prompt");
}

}  // namespace

std::vector<int32_t> EncodedText(const ServedModel& served, const std::string& text, const char* param) {
  try {
    return served.tokenizer->Encode(text);
  } catch (const Error& error) {
    throw ApiError(400, error.what(), param);
  }
}

void BeginText(const ServedModel& served, std::vector<int32_t>& tokens) {
  const text::SpecialIds& special = served.tokenizer->special();
  if (special.starts_texts) tokens.insert(tokens.begin(), special.bos);
}

std::vector<int32_t> PromptTokens(const ServedModel& served, const RequestLimits& limits,
                                  const Prompt& prompt, bool at_start) {
  std::vector<int32_t> tokens;
  const auto* const text = std::get_if<std::string>(&prompt);
  if (text != nullptr) {
    tokens = EncodedText(served, *text, "prompt");
  } else {
    tokens = std::get<std::vector<int32_t>>(prompt);
  }
  if (static_cast<int64_t>(tokens.size()) > limits.prompt_tokens) {
    throw ApiError(
        400, StrCat("prompt has ", tokens.size(), " tokens; at most ", limits.prompt_tokens, " are accepted"),
        "prompt", "context_length_exceeded");
  }
  if (text != nullptr && !text->empty() && at_start) BeginText(served, tokens);
  return tokens;
}

std::vector<std::vector<int32_t>> PromptsOf(const ServedModel& served, const RequestLimits& limits,
                                            const CompletionRequest& request,
                                            const Conversation* conversation) {
  const bool fresh = conversation == nullptr || conversation->position() == 0;
  std::vector<std::vector<int32_t>> prompts;
  for (const Prompt& prompt : request.prompts) prompts.push_back(PromptTokens(served, limits, prompt, fresh));
  if (request.prompts.empty()) prompts.emplace_back();
  for (std::vector<int32_t>& prompt : prompts) {
    if (prompt.empty() && fresh) prompt.push_back(served.FirstToken());
  }
  if (conversation != nullptr) CheckContinues(*conversation, prompts[0]);
  return prompts;
}

std::vector<Task> TasksOf(const ServedModel& served, const CompletionRequest& request,
                          std::span<const std::vector<int32_t>> prompts,
                          const std::shared_ptr<Conversation>& conversation, int64_t midway_tokens) {
  const uint64_t seed = request.has_seed ? request.sampler.seed : RandomBits();
  std::vector<Task> tasks;
  for (const std::vector<int32_t>& prompt : prompts) {
    const auto first = static_cast<int64_t>(tasks.size());
    for (int64_t i = 0; i < request.n; ++i) {
      Task task;
      task.conversation = conversation;
      task.prompt = prompt;
      task.max_tokens = request.max_tokens;
      task.sampler = request.sampler;
      task.sampler.seed = seed + static_cast<uint64_t>(i);
      task.stops = request.stops;
      task.at_start = prompt.size() == 1 && prompt[0] == served.FirstToken();
      task.logprobs = request.logprobs;
      task.prompt_logprobs = request.echo && request.logprobs >= 0;
      task.trace = request.trace;
      task.grammar = request.grammar;
      if (request.templated) task.also_ends = served.tokenizer->special().End();
      task.midway_tokens = conversation ? midway_tokens : 0;
      if (i > 0 && !task.prompt_logprobs && !task.trace) task.same_prompt_as = first;
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

void LimitToModel(const ServedModel& served, RequestLimits& limits) {
  limits.vocabulary = served.tokenizer->vocab_size();
  const model::ModelConfig& config = served.model->config();
  if (!config.Grows()) return;
  int64_t token_bytes = 0;
  for (int64_t i = 0; i < config.layers; ++i) {
    if (config.KeepsAll(i))
      token_bytes += config.KvHeads() * config.HeadDim() * 2 * static_cast<int64_t>(sizeof(float));
  }
  const int64_t tokens = std::max<int64_t>(1, kLargestCache / token_bytes / 2);
  limits.prompt_tokens = std::min(limits.prompt_tokens, tokens);
  limits.max_tokens = std::min(limits.max_tokens, tokens);
}

}  // namespace lattice::server
