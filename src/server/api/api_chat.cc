// Chats with a model whose checkpoint has a chat template.
#include <algorithm>

#include "server/api/api.h"
#include "server/engine/random_id.h"

namespace lattice::server {
namespace {

// A special token in the rendered text: a marker that no message can contain by design, because it is random.
struct SpecialMarker {
  std::string text;
  int32_t id;
};

}  // namespace

void Api::UseTemplate(CompletionRequest& request) const {
  const text::SpecialIds& special = served_.tokenizer->special();
  std::vector<SpecialMarker> markers;
  OrderedJson tokens = OrderedJson::object();
  const OrderedJson& known = served_.chat_template->special();
  for (const auto& [name, id] :
       {std::pair{"bos_token", special.Begin()}, std::pair{"eos_token", special.End()}}) {
    // Where the tokenizer has no such id, the template's name for it is text like any other.
    if (id < 0) continue;
    markers.push_back({RandomId("\x02"), id});
    tokens[name] = markers.back().text;
  }
  OrderedJson messages = OrderedJson::array();
  for (const ChatMessage& message : request.messages)
    messages.push_back({{"role", message.role}, {"content", message.content}});
  std::string rendered;
  try {
    rendered = served_.chat_template->Render(messages, true, tokens);
  } catch (const Error& error) {
    throw ApiError(400, StrCat("the model's chat template refuses the messages: ", error.what()), "messages",
                   "chat_template");
  }
  std::vector<int32_t> ids;
  for (size_t at = 0; at < rendered.size();) {
    size_t end = rendered.size();
    const SpecialMarker* next = nullptr;
    for (const SpecialMarker& marker : markers) {
      const size_t found = rendered.find(marker.text, at);
      if (found < end) end = found, next = &marker;
    }
    const std::vector<int32_t> part = Encoded(rendered.substr(at, end - at), "messages");
    ids.insert(ids.end(), part.begin(), part.end());
    if (next != nullptr) ids.push_back(next->id);
    at = end + (next == nullptr ? 0 : next->text.size());
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
