// GPT-2's pre-tokenisation by hand, equivalent to its regular expression.
#include "text/bpe_split.h"

#include "base/error.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace lattice::text {
namespace {

struct Next {
  CharClass kind;
  size_t length;
};

Next Look(std::string_view text) {
  const Utf8Char c = DecodeUtf8(text);
  return {c.kind == Utf8Char::Kind::kValid ? ClassOf(c.code) : CharClass::kOther, c.length};
}

size_t Contraction(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(ending)) return ending.size();
  }
  return 0;
}

// End of the run of `kind` that starts at `begin`.
size_t RunEnd(std::string_view text, size_t begin, CharClass kind) {
  size_t end = begin;
  while (end < text.size()) {
    const Next next = Look(text.substr(end));
    if (next.kind != kind) break;
    end += next.length;
  }
  return end;
}

// The length of a run of spaces without its last one, which belongs to the following word; the whole run if
// it is a single space or ends the text.
size_t SpaceWord(std::string_view text) {
  size_t last = 0, end = 0;
  while (end < text.size()) {
    const Next next = Look(text.substr(end));
    if (next.kind != CharClass::kSpace) return last > 0 ? last : end;
    last = end;
    end += next.length;
  }
  return end;
}

}  // namespace

size_t FirstWord(std::string_view text) {
  if (text.front() == '\'') {
    if (const size_t length = Contraction(text)) return length;
  }
  const size_t start = text.front() == ' ' ? 1 : 0;
  if (start < text.size()) {
    const CharClass kind = Look(text.substr(start)).kind;
    if (kind != CharClass::kSpace) return RunEnd(text, start, kind);
  }
  return SpaceWord(text);
}

std::string WordPattern() {
  const std::string letters = BracketOf(CharClass::kLetter), numbers = BracketOf(CharClass::kNumber),
                    spaces = BracketOf(CharClass::kSpace);
  return StrCat("'s|'t|'re|'ve|'m|'ll|'d| ?[", letters, "]+| ?[", numbers, "]+| ?[^", spaces, letters,
                numbers, "]+|[", spaces, "]+(?![^", spaces, "])|[", spaces, "]+");
}

}  // namespace lattice::text
