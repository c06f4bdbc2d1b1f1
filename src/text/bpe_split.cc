// Pre-tokenisation by hand, equivalent to the regular expressions.
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

// (?i:...) folds case as Unicode does: U+017F, a long s, is an s.
size_t FoldedContraction(std::string_view text) {
  const std::string_view rest = text.substr(1);
  if (rest.starts_with("\xC5\xBF")) return 3;
  const auto lower = [&](size_t i) {
    const char c = i < rest.size() ? rest[i] : '\0';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  };
  const char first = lower(0), second = lower(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
    return 3;
  return 0;
}

bool IsNewline(char c) { return c == '\r' || c == '\n'; }

// The end of \s*[\r\n]+ at the start of the text: behind the last newline of its spaces; 0 when there is none.
size_t LinesEnd(std::string_view text) {
  size_t lines = 0;
  for (size_t end = 0; end < text.size();) {
    const Next next = Look(text.substr(end));
    if (next.kind != CharClass::kSpace) break;
    end += next.length;
    if (IsNewline(text[end - 1])) lines = end;
  }
  return lines;
}

size_t NumbersEnd(std::string_view text, int most) {
  size_t end = 0;
  for (int i = 0; i < most && end < text.size(); ++i) {
    const Next next = Look(text.substr(end));
    if (next.kind != CharClass::kNumber) break;
    end += next.length;
  }
  return end;
}

size_t FirstGpt2Word(std::string_view text) {
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

// Numbers in words of at most `numbers`.
size_t FirstLlamaWord(std::string_view text, int numbers) {
  if (text.front() == '\'') {
    if (const size_t length = FoldedContraction(text)) return length;
  }
  const Next first = Look(text);
  if (first.kind == CharClass::kLetter) return RunEnd(text, 0, CharClass::kLetter);
  if (first.kind == CharClass::kNumber) return NumbersEnd(text, numbers);
  if (!IsNewline(text.front()) && first.length < text.size() &&
      Look(text.substr(first.length)).kind == CharClass::kLetter) {
    return RunEnd(text, first.length, CharClass::kLetter);
  }
  const size_t start = text.front() == ' ' ? 1 : 0;
  if (start < text.size() && Look(text.substr(start)).kind == CharClass::kOther) {
    size_t end = RunEnd(text, start, CharClass::kOther);
    while (end < text.size() && IsNewline(text[end])) ++end;
    return end;
  }
  if (const size_t lines = LinesEnd(text)) return lines;
  return SpaceWord(text);
}

// A number, or the first GPT-2 word of the text before the next one, which is looked for no further than the word
// can depend on it.
size_t FirstWordBetweenDigits(std::string_view text) {
  const Next first = Look(text);
  if (first.kind == CharClass::kNumber) return first.length;
  const size_t whole = FirstGpt2Word(text);
  // Spaces leave their last one to the word behind them, which may be a number.
  size_t last = whole;
  if (whole < text.size()) {
    const Next behind = Look(text.substr(whole));
    if (behind.kind == CharClass::kSpace) last += behind.length;
  }
  for (size_t end = 0; end < text.size() && end <= last;) {
    const Next next = Look(text.substr(end));
    if (next.kind == CharClass::kNumber) return FirstGpt2Word(text.substr(0, end));
    end += next.length;
  }
  return whole;
}

}  // namespace

size_t FirstWord(std::string_view text, WordSplit split) {
  switch (split) {
    case WordSplit::kGpt2:
      return FirstGpt2Word(text);
    case WordSplit::kDigits:
      return FirstWordBetweenDigits(text);
    case WordSplit::kLlama3:
      return FirstLlamaWord(text, 3);
    case WordSplit::kQwen2:
      return FirstLlamaWord(text, 1);
  }
  return text.size();
}

std::string_view PatternOf(WordSplit split) {
  switch (split) {
    case WordSplit::kGpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case WordSplit::kDigits:
      return "";
    case WordSplit::kLlama3:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case WordSplit::kQwen2:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  }
  return "";
}

std::optional<WordSplit> SplitOfPattern(std::string_view pattern) {
  for (const WordSplit split : {WordSplit::kGpt2, WordSplit::kLlama3, WordSplit::kQwen2}) {
    if (pattern == PatternOf(split)) return split;
  }
  if (pattern == WordPattern()) return WordSplit::kGpt2;
  return std::nullopt;
}

std::string WordPattern() {
  const std::string letters = BracketOf(CharClass::kLetter), numbers = BracketOf(CharClass::kNumber),
                    spaces = BracketOf(CharClass::kSpace);
  return StrCat("'s|'t|'re|'ve|'m|'ll|'d| ?[", letters, "]+| ?[", numbers, "]+| ?[^", spaces, letters,
                numbers, "]+|[", spaces, "]+(?![^", spaces, "])|[", spaces, "]+");
}

}  // namespace lattice::text
