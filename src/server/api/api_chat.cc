// Chats with a model whose checkpoint has a chat template.
#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "server/api/api.h"
#include "server/engine/random_id.h"

namespace lattice::server {
namespace {

// Places in a text at which given tokens stand. A place is spelled with a random name, so no message can contain one.
class Markers {
 public:
  // The spelling of a place with these tokens.
  std::string Add(std::vector<int32_t> ids) {
    places_.push_back(std::move(ids));
    return StrCat(name_, places_.size() - 1, kEnd);
  }

  // The tokens of a text with places; what else spells a special token, such as <|im_start|>, is that token.
  std::vector<int32_t> Encode(const text::Tokenizer& tokenizer, std::string_view text) const {
    std::vector<int32_t> ids;
    for (size_t at = 0; at < text.size();) {
      const size_t place = std::min(text.find(name_, at), text.size());
      tokenizer.EncodeMarkedTo(text.substr(at, place - at), ids);
      if (place == text.size()) break;
      size_t number = 0;
      const char* digits = text.data() + place + name_.size();
      const char* end = std::from_chars(digits, text.data() + text.size(), number).ptr;
      // A template may cut a message anywhere, also inside of a name.
      if (number < places_.size()) ids.insert(ids.end(), places_[number].begin(), places_[number].end());
      at = static_cast<size_t>(end - text.data()) + (end < text.data() + text.size() && *end == kEnd ? 1 : 0);
    }
    return ids;
  }

 private:
  static constexpr char kEnd = '\x03';
  std::string name_ = RandomId("\x02");
  std::vector<std::vector<int32_t>> places_;
};

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

// A stranger's text in which what spells a special token is a place with the tokens of plain text.
std::string Protected(const text::Tokenizer& tokenizer, std::string content, Markers& markers) {
  std::vector<std::string> spellings;
  for (const text::SpecialToken& token : tokenizer.special_tokens()) {
    if (!token.text.empty() && content.find(token.text) != std::string::npos) spellings.push_back(token.text);
  }
  // The longest first: it may contain another.
  std::sort(spellings.begin(), spellings.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  for (const std::string& spelling : spellings)
    content = Replaced(content, spelling, markers.Add(tokenizer.Encode(spelling)));
  return content;
}

}  // namespace

void Api::UseTemplate(CompletionRequest& request) const {
  const text::SpecialIds& special = served_.tokenizer->special();
  Markers markers;
  OrderedJson tokens = OrderedJson::object();
  const OrderedJson& known = served_.chat_template->special();
  for (const auto& [name, id] :
       {std::pair{"bos_token", special.Begin()}, std::pair{"eos_token", special.End()}}) {
    // Where the tokenizer has no such id, the template's name for it is text like any other.
    if (id < 0) continue;
    tokens[name] = markers.Add({id});
  }
  OrderedJson messages = OrderedJson::array();
  for (const ChatMessage& message : request.messages)
    messages.push_back(
        {{"role", message.role}, {"content", Protected(*served_.tokenizer, message.content, markers)}});
  std::string rendered;
  try {
    rendered = served_.chat_template->Render(messages, true, tokens);
  } catch (const Error& error) {
    throw ApiError(400, StrCat("the model's chat template refuses the messages: ", error.what()), "messages",
                   "chat_template");
  }
  try {
    request.prompts = {Prompt(markers.Encode(*served_.tokenizer, rendered))};
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "messages");
  }
  request.templated = true;
  std::erase(request.stops, kChatStop);
  // A model writes the end of its turn as the template does; a name that is no special token here is text.
  const auto end = known.find("eos_token");
  if (special.End() < 0 && end != known.end() && end->is_string() && !end->get<std::string>().empty())
    request.stops.push_back(end->get<std::string>());
}

}  // namespace lattice::server
