// The lexer of templates.
#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/ascii.h"
#include "base/error.h"
#include "text/utf8.h"

namespace lattice::text::jinja {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsNameStart(char c) { return IsLetter(c) || c == '_'; }

int LinesIn(std::string_view text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

// Appends the character of `digits` hexadecimal digits behind `at`, which ends at the last of them.
void AppendCode(std::string_view source, size_t& at, size_t digits, std::string& out) {
  uint32_t code = 0;
  const std::string_view text = source.substr(at + 1, digits);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
  Check(text.size() == digits && error == std::errc() && end == text.data() + digits,
        "[template] an escape in a string is not ", digits, " hexadecimal digits");
  at += digits;
  AppendUtf8(code, out);
}

// The value of a string literal behind its opening quote; `at` ends behind the closing one.
std::string StringLiteral(std::string_view source, size_t& at, int line) {
  const char quote = source[at++];
  std::string value;
  for (; at < source.size() && source[at] != quote; ++at) {
    if (source[at] != '\\' || at + 1 >= source.size()) {
      value += source[at];
      continue;
    }
    const char escaped = source[++at];
    switch (escaped) {
      case 'n':
        value += '\n';
        break;
      case 't':
        value += '\t';
        break;
      case 'r':
        value += '\r';
        break;
      case '\\':
      case '\'':
      case '"':
        value += escaped;
        break;
      case 'u':
      case 'x':
        AppendCode(source, at, escaped == 'u' ? 4 : 2, value);
        break;
      default:
        value += {'\\', escaped};
    }
  }
  Check(at < source.size(), "[template] line ", line, ": a string has no end");
  ++at;
  return value;
}

// The operators, longest first.
constexpr std::array<std::string_view, 28> kOperators = {
    "**", "//", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ".", ",",
    ":",  "|",  "=",  "<",  ">",  "+",  "-", "*", "/", "%", "~", ";", "&", "!"};

Token NextToken(std::string_view source, size_t& at, int line) {
  Token token;
  token.line = line;
  const size_t begin = at;
  const char c = source[at];
  if (IsNameStart(c)) {
    while (at < source.size() && (IsNameStart(source[at]) || IsDigit(source[at]))) ++at;
    token.kind = Token::Kind::kName;
  } else if (IsDigit(c)) {
    while (at < source.size() && IsDigit(source[at])) ++at;
    token.kind = Token::Kind::kInteger;
    if (at + 1 < source.size() && source[at] == '.' && IsDigit(source[at + 1])) {
      for (++at; at < source.size() && IsDigit(source[at]);) ++at;
      token.kind = Token::Kind::kFloat;
    }
  } else if (c == '"' || c == '\'') {
    token.kind = Token::Kind::kString;
    token.text = StringLiteral(source, at, line);
    return token;
  } else {
    const auto* const found = std::find_if(kOperators.begin(), kOperators.end(), [&](std::string_view op) {
      return source.substr(at).starts_with(op);
    });
    Check(found != kOperators.end(), "[template] line ", line, ": the character '", c, "' is not understood");
    token.kind = Token::Kind::kOperator;
    at += found->size();
  }
  token.text = source.substr(begin, at - begin);
  return token;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {
    // As Jinja does: a single newline at the end does not count.
    if (source_.ends_with('\n')) source_.remove_suffix(1);
  }

  std::vector<Segment> Run() {
    while (at_ < source_.size()) {
      const size_t open = NextTag();
      Text(source_.substr(at_, open - at_), open);
      at_ = open;
      if (at_ < source_.size()) Tag();
    }
    return std::move(out_);
  }

 private:
  size_t NextTag() const {
    size_t open = source_.find('{', at_);
    while (open != std::string_view::npos && open + 1 < source_.size() &&
           std::string_view("{%#").find(source_[open + 1]) == std::string_view::npos)
      open = source_.find('{', open + 1);
    return open == std::string_view::npos || open + 1 >= source_.size() ? source_.size() : open;
  }

  // Adds the text before the tag at `open`, without what the tags around it drop.
  void Text(std::string_view text, size_t open) {
    const int lines = LinesIn(text);
    if (strip_next_) {
      while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
    } else if (trim_newline_ && text.starts_with('\n')) {
      text.remove_prefix(1);
    }
    if (open < source_.size()) {
      const char mark = open + 2 < source_.size() ? source_[open + 2] : ' ';
      if (mark == '-') {
        while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
      } else if (source_[open + 1] != '{' && mark != '+') {
        StripLine(text);
      }
    }
    if (!text.empty()) out_.push_back({Segment::Kind::kText, std::string(text), {}, line_});
    line_ += lines;
    strip_next_ = trim_newline_ = false;
  }

  // Drops spaces behind the last newline, if the tag that follows begins its line.
  void StripLine(std::string_view& text) const {
    const size_t last = text.find_last_not_of(" \t");
    const bool whole = last == std::string_view::npos;
    if (!whole && text[last] != '\n') return;
    const bool line_begins = !whole || text.data() == source_.data() || text.data()[-1] == '\n';
    if (line_begins) text = text.substr(0, whole ? 0 : last + 1);
  }

  void Tag() {
    const char kind = source_[at_ + 1];
    if (kind == '#') return Comment();
    at_ += 2;
    if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) ++at_;
    Segment segment;
    segment.kind = kind == '{' ? Segment::Kind::kExpression : Segment::Kind::kStatement;
    segment.line = line_;
    const std::string_view close = kind == '{' ? "}}" : "%}";
    int open = 0;  // brackets: "}}" may also end two dictionaries
    for (;;) {
      while (at_ < source_.size() && IsSpace(source_[at_])) line_ += source_[at_++] == '\n' ? 1 : 0;
      Check(at_ < source_.size(), "[template] line ", segment.line, ": a tag has no end");
      const bool dash =
          (source_[at_] == '-' || source_[at_] == '+') && source_.substr(at_ + 1).starts_with(close);
      if (dash || (source_.substr(at_).starts_with(close) && open == 0)) {
        strip_next_ = dash && source_[at_] == '-';
        trim_newline_ = kind == '%' && !(dash && source_[at_] == '+');
        at_ += dash ? 3 : 2;
        break;
      }
      const size_t before = at_;
      Token token = NextToken(source_, at_, line_);
      line_ += LinesIn(source_.substr(before, at_ - before));
      if (token.kind == Token::Kind::kOperator) {
        if (token.text == "(" || token.text == "[" || token.text == "{") ++open;
        if (token.text == ")" || token.text == "]" || token.text == "}") --open;
      }
      segment.tokens.push_back(std::move(token));
    }
    segment.tokens.push_back({Token::Kind::kEnd, "", line_});
    const bool raw = segment.kind == Segment::Kind::kStatement && segment.tokens[0].text == "raw";
    if (raw) return Raw();
    out_.push_back(std::move(segment));
  }

  void Comment() {
    const size_t end = source_.find("#}", at_ + 2);
    Check(end != std::string_view::npos, "[template] line ", line_, ": a comment has no end");
    line_ += LinesIn(source_.substr(at_, end - at_));
    strip_next_ = source_[end - 1] == '-' && end - 1 > at_ + 1;
    trim_newline_ = true;
    at_ = end + 2;
  }

  // Text up to {% endraw %}.
  void Raw() {
    size_t end = source_.find("endraw", at_);
    Check(end != std::string_view::npos, "[template] line ", line_, ": raw has no endraw");
    const size_t open = source_.rfind("{%", end), close = source_.find("%}", end);
    Check(open != std::string_view::npos && open >= at_ && close != std::string_view::npos,
          "[template] line ", line_, ": raw has no endraw");
    out_.push_back({Segment::Kind::kText, std::string(source_.substr(at_, open - at_)), {}, line_});
    line_ += LinesIn(source_.substr(at_, close - at_));
    at_ = close + 2;
    trim_newline_ = true;
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  bool strip_next_ = false, trim_newline_ = false;
  std::vector<Segment> out_;
};

}  // namespace

std::vector<Segment> Lex(std::string_view source) { return Lexer(source).Run(); }

}  // namespace lattice::text::jinja
