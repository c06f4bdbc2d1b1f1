// Chats with a model whose checkpoint has a chat template.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/api/prompts.h"
#include "server/engine/api_error.h"
#include "server/engine/random_id.h"
#include "text/guarded_text.h"

namespace lattice::server {

using OrderedJson = nlohmann::ordered_json;

void UseTemplate(const ServedModel& served, CompletionRequest& request) {
  if (!served.chat_template) return;
  const text::SpecialIds& special = served.tokenizer->special();
  text::GuardedText guarded(*served.tokenizer, std::to_string(RandomBits()));
  OrderedJson tokens = OrderedJson::object();
  const OrderedJson& known = served.chat_template->special();
  // Where the tokenizer has no such id, the template's name for it is text like any other.
  if (special.Begin() >= 0) tokens["bos_token"] = guarded.Special(special.Begin());
  if (special.End() >= 0) tokens["eos_token"] = guarded.Special(special.End());
  std::vector<int32_t> ids;
  try {
    OrderedJson messages = OrderedJson::array();
    for (const ChatMessage& message : request.messages)
      messages.push_back({{"role", message.role},
                          {"content", guarded.Guard(message.content, text::jinja::Limits().output_bytes)}});
    ids = guarded.Encode(served.chat_template->Render(messages, true, tokens));
  } catch (const Error& error) {
    throw ApiError(400, StrCat("the model's chat template refuses the messages: ", error.what()), "messages",
                   "chat_template");
  }
  request.prompts = {Prompt(std::move(ids))};
  request.templated = true;
  std::erase(request.stops, kChatStop);
  // A model writes the end of its turn as the template does; a name that is no special token here is text.
  const auto end = known.find("eos_token");
  if (special.End() < 0 && end != known.end() && end->is_string() && !end->get<std::string>().empty())
    request.stops.push_back(end->get<std::string>());
}

}  // namespace lattice::server
