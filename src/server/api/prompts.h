// From a parsed request to what the engine computes: the tokens of its prompts, and its tasks. Needs neither connections
// nor threads, so that a model inside a web page reads requests as the server does.
#ifndef LATTICE_SERVER_API_PROMPTS_H_
#define LATTICE_SERVER_API_PROMPTS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/api/completion_request.h"
#include "server/engine/conversation.h"
#include "server/engine/job.h"
#include "server/engine/served_model.h"

namespace lattice::server {

// Throws ApiError (400) for a text that the tokenizer refuses; `param` is the field of the request.
std::vector<int32_t> EncodedText(const ServedModel& served, const std::string& text, const char* param);
// Puts the token in front that every text of the model begins with, if there is one.
void BeginText(const ServedModel& served, std::vector<int32_t>& tokens);
// `at_start`: nothing stands before the prompt, so that a text begins as all texts of the model do. Token ids are
// taken as they are. Throws ApiError (400) for more tokens than the limits allow.
std::vector<int32_t> PromptTokens(const ServedModel& served, const RequestLimits& limits,
                                  const Prompt& prompt, bool at_start);
// The tokens of all prompts of a request, behind what the conversation, which may be null, has read. Throws ApiError
// (400) when it can be continued by a prompt only, and there is none.
std::vector<std::vector<int32_t>> PromptsOf(const ServedModel& served, const RequestLimits& limits,
                                            const CompletionRequest& request,
                                            const Conversation* conversation);
// A task for each text that is asked for. `midway_tokens` as in Task.
std::vector<Task> TasksOf(const ServedModel& served, const CompletionRequest& request,
                          std::span<const std::vector<int32_t>> prompts,
                          const std::shared_ptr<Conversation>& conversation, int64_t midway_tokens);
// Writes the messages of a chat by the checkpoint's chat template, as tokens, and adds where the answer ends. Does
// nothing where there is no template.
void UseTemplate(const ServedModel& served, CompletionRequest& request);

// Bounds the texts of a model whose state grows with them. Sets the limit on token ids.
void LimitToModel(const ServedModel& served, RequestLimits& limits);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_PROMPTS_H_
