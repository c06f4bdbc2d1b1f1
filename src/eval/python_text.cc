// Python's string methods on UTF-8 text, including full Unicode case mapping.
#include "eval/python_text.h"

#include "text/letter_case.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace lattice::eval {
namespace {

// str.isspace() also holds for the four separators below the space.
bool IsSpace(char32_t code) {
  return (code >= 0x1C && code <= 0x1F) || text::ClassOf(code) == text::CharClass::kSpace;
}

// Bytes of the last character of `text`, which must not be empty.
size_t LastLength(std::string_view text) {
  size_t length = 1;
  while (length < 4 && length < text.size() &&
         (static_cast<unsigned char>(text[text.size() - length]) & 0xC0) == 0x80)
    ++length;
  const text::Utf8Char last = text::DecodeUtf8(text.substr(text.size() - length));
  return last.kind == text::Utf8Char::Kind::kValid && last.length == length ? length : 1;
}

bool StartsWithSpace(std::string_view text, size_t& length) {
  const text::Utf8Char c = text::DecodeUtf8(text);
  length = c.length;
  return c.kind == text::Utf8Char::Kind::kValid && IsSpace(c.code);
}

text::CaseRole RoleOf(const text::Utf8Char& c) {
  return c.kind == text::Utf8Char::Kind::kValid ? text::CaseRoleOf(c.code) : text::CaseRole::kNone;
}

// The role of the first character that is not ignorable; kNone when there is none.
text::CaseRole FirstRole(std::string_view text) {
  while (!text.empty()) {
    const text::Utf8Char c = text::DecodeUtf8(text);
    if (const text::CaseRole role = RoleOf(c); role != text::CaseRole::kIgnorable) return role;
    text.remove_prefix(c.length);
  }
  return text::CaseRole::kNone;
}

}  // namespace

size_t TrailingSpace(std::string_view text) {
  size_t kept = text.size();
  while (kept > 0) {
    const size_t last = LastLength(text.substr(0, kept));
    size_t length;
    if (!StartsWithSpace(text.substr(kept - last, last), length)) break;
    kept -= last;
  }
  return text.size() - kept;
}

std::string_view Strip(std::string_view text) {
  size_t length;
  while (!text.empty() && StartsWithSpace(text, length)) text.remove_prefix(length);
  text.remove_suffix(TrailingSpace(text));
  return text;
}

int64_t CodePoints(std::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); text.remove_prefix(text::DecodeUtf8(text).length)) ++count;
  return count;
}

std::string Capitalize(std::string_view text) {
  std::string out;
  // The role of the last character that is not ignorable: it decides whether a sigma is final.
  text::CaseRole before = text::CaseRole::kNone;
  for (bool first = true; !text.empty(); first = false) {
    const text::Utf8Char c = text::DecodeUtf8(text);
    const std::string_view own = text.substr(0, c.length);
    text.remove_prefix(c.length);
    const text::CaseRole role = RoleOf(c);
    if (c.kind != text::Utf8Char::Kind::kValid) {
      out += own;
    } else if (first) {
      text::AppendTitle(c.code, out);
    } else if (c.code == text::kCapitalSigma && before == text::CaseRole::kCased &&
               FirstRole(text) != text::CaseRole::kCased) {
      text::AppendUtf8(text::kFinalSigma, out);
    } else {
      text::AppendLower(c.code, out);
    }
    if (role != text::CaseRole::kIgnorable) before = role;
  }
  return out;
}

std::string Replace(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at; (at = text.find(from)) != std::string_view::npos; text.remove_prefix(at + from.size())) {
    out += text.substr(0, at);
    out += to;
  }
  return out += text;
}

}  // namespace lattice::eval
