// Cuts a template into text, expressions and statements, with the whitespace rules of chat templates:
// trim_blocks (a newline behind a statement is dropped) and lstrip_blocks (so are spaces before one that begins
// a line), and '-' and '+' at the tags.
#ifndef LATTICE_TEXT_JINJA_LEXER_H_
#define LATTICE_TEXT_JINJA_LEXER_H_

#include <string>
#include <string_view>
#include <vector>

namespace lattice::text::jinja {

struct Token {
  enum class Kind { kName, kString, kInteger, kFloat, kOperator, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // of a string: its value
  int line = 1;
};

struct Segment {
  enum class Kind { kText, kExpression, kStatement };
  Kind kind = Kind::kText;
  std::string text;           // kText
  std::vector<Token> tokens;  // of the others, with kEnd last
  int line = 1;
};

// Throws Error that names the line.
std::vector<Segment> Lex(std::string_view source);

}  // namespace lattice::text::jinja

#endif  // LATTICE_TEXT_JINJA_LEXER_H_
