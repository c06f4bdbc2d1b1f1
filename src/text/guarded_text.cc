#include "text/guarded_text.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace lattice::text {
namespace {

constexpr std::string_view kSpaces = " \t\n\r\f\v";  // what a template's filters may take off the ends
constexpr char kMarkBegin = '\x02', kMarkEnd = '\x03';

std::vector<SpecialToken> Reversed(std::span<const SpecialToken> tokens) {
  std::vector<SpecialToken> out(tokens.begin(), tokens.end());
  for (SpecialToken& token : out) std::reverse(token.text.begin(), token.text.end());
  return out;
}

}  // namespace

GuardedText::GuardedText(const Tokenizer& tokenizer, const std::string& secret)
    : tokenizer_(tokenizer),
      reversed_(Reversed(tokenizer.special_tokens())),
      spellings_(tokenizer.special_tokens()),
      backwards_(reversed_),
      prefix_(StrCat(kMarkBegin, secret, ":")) {
  for (const SpecialToken& token : tokenizer.special_tokens()) marks_.push_back(Mark(token.text));
}

std::string GuardedText::Mark(Piece stands_for) {
  pieces_.push_back(std::move(stands_for));
  return StrCat(prefix_, pieces_.size() - 1, kMarkEnd);
}

std::string GuardedText::Special(int32_t id) { return Mark(id); }

size_t GuardedText::SharedAtEnd(std::string_view text) const {
  const size_t most = std::min(text.size(), spellings_.longest());
  for (size_t count = most; count > 0; --count) {
    if (spellings_.Begins(text.substr(text.size() - count))) return count;
  }
  return 0;
}

size_t GuardedText::SharedAtStart(std::string_view text) const {
  std::string head(text.substr(0, std::min(text.size(), spellings_.longest())));
  std::reverse(head.begin(), head.end());
  for (size_t count = head.size(); count > 0; --count) {
    if (backwards_.Begins(std::string_view(head).substr(head.size() - count))) return count;
  }
  return 0;
}

std::string GuardedText::Guard(std::string_view message, size_t most_bytes) {
  const size_t begin = std::min(message.find_first_not_of(kSpaces), message.size());
  const size_t end = std::max(begin, message.find_last_not_of(kSpaces) + 1);
  std::string out(message.substr(0, begin));
  std::string_view text = message.substr(begin, end - begin);
  // A mark in place of all of it, when a spelling could go on at both sides.
  const bool inside =
      !text.empty() && text.size() < spellings_.longest() &&
      std::any_of(tokenizer_.special_tokens().begin(), tokenizer_.special_tokens().end(),
                  [&](const SpecialToken& token) { return token.text.find(text) != std::string::npos; });
  const size_t first = inside ? text.size() : SharedAtStart(text);
  const size_t last = inside ? 0 : std::min(SharedAtEnd(text), text.size() - first);
  if (first > 0) out += Mark(std::string(text.substr(0, first)));
  const size_t until = text.size() - last;
  for (size_t at = first; at < until;) {
    Check(out.size() <= most_bytes, "[chat] a message has too many names of special tokens; it may have ",
          most_bytes, " bytes with a mark in place of each");
    const SpecialToken* const token = spellings_.At(text.substr(0, until), at);
    if (token == nullptr) {
      out += text[at++];
    } else {
      out += marks_[static_cast<size_t>(token - tokenizer_.special_tokens().data())];
      at += token->text.size();
    }
  }
  if (last > 0) out += Mark(std::string(text.substr(until)));
  return out.append(message.substr(end));
}

const GuardedText::Piece* GuardedText::TakeMark(std::string_view rendered, size_t& at) const {
  if (rendered[at] != kMarkBegin || !rendered.substr(at).starts_with(prefix_)) return nullptr;
  const char* const digits = rendered.data() + at + prefix_.size();
  const char* const limit = rendered.data() + rendered.size();
  size_t number = 0;
  const auto [behind, error] = std::from_chars(digits, limit, number);
  if (error != std::errc() || behind == limit || *behind != kMarkEnd || number >= pieces_.size())
    return nullptr;
  at = static_cast<size_t>(behind + 1 - rendered.data());
  return &pieces_[number];
}

std::vector<int32_t> GuardedText::Encode(std::string_view rendered) const {
  std::vector<int32_t> ids;
  std::string text;  // since the last special token
  const auto special = [&](int32_t id) {
    if (!text.empty()) tokenizer_.EncodeTo(text, ids);
    text.clear();
    ids.push_back(id);
  };
  for (size_t at = 0; at < rendered.size();) {
    if (const Piece* const piece = TakeMark(rendered, at)) {
      if (const int32_t* const id = std::get_if<int32_t>(piece)) {
        special(*id);
      } else {
        text += std::get<std::string>(*piece);
      }
    } else if (const SpecialToken* const token = spellings_.At(rendered, at)) {
      special(token->id);
      at += token->text.size();
    } else {
      text += rendered[at++];
    }
  }
  if (!text.empty()) tokenizer_.EncodeTo(text, ids);
  return ids;
}

}  // namespace lattice::text
