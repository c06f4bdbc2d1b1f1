// The parser of expressions: recursive descent, from the tokens of one tag to nodes. Internal to src/text/jinja.
#ifndef LATTICE_TEXT_JINJA_EXPRESSION_PARSER_H_
#define LATTICE_TEXT_JINJA_EXPRESSION_PARSER_H_

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/jinja/lexer.h"
#include "text/jinja/nodes.h"

namespace lattice::text::jinja {

// Parses the expressions in the tokens of one tag.
class ExpressionParser {
  using Kind = Node::Kind;

 public:
  ExpressionParser(const std::vector<Token>& tokens, const Limits& limits)
      : tokens_(tokens), limits_(limits) {}

  const Token& Peek() const { return tokens_[at_]; }
  Token Take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool Is(std::string_view text) const {
    return (Peek().kind == Token::Kind::kName || Peek().kind == Token::Kind::kOperator) &&
           Peek().text == text;
  }
  bool TakeIf(std::string_view text) {
    if (!Is(text)) return false;
    ++at_;
    return true;
  }
  void Expect(std::string_view text) {
    Check(TakeIf(text), "[template] line ", Peek().line, ": expected \"", text, "\" before \"", Peek().text,
          "\"");
  }
  std::string Name() {
    Check(Peek().kind == Token::Kind::kName, "[template] line ", Peek().line, ": expected a name before \"",
          Peek().text, "\"");
    return Take().text;
  }
  void End() {
    Check(Peek().kind == Token::Kind::kEnd, "[template] line ", Peek().line, ": \"", Peek().text,
          "\" is not understood here");
  }

  // An expression; with a comma behind it, a list.
  NodePtr ExpressionList() {
    NodePtr first = Expression();
    if (!Is(",")) return first;
    NodePtr list = New(Kind::kList);
    Add(*list, std::move(first));
    while (TakeIf(",")) {
      if (Peek().kind == Token::Kind::kEnd || Is("=")) break;
      Add(*list, Expression());
    }
    return list;
  }

  NodePtr Expression() {
    const Depth guard(*this);
    NodePtr value = Or();
    if (!TakeIf("if")) return value;
    NodePtr choice = New(Kind::kChoice);
    NodePtr condition = Or();
    Add(*choice, std::move(value));
    Add(*choice, std::move(condition));
    if (TakeIf("else")) Add(*choice, Expression());
    return choice;
  }

  NodePtr Or() {
    return Chain({"or"}, [this] { return And(); });
  }

 private:
  // Bounds the recursion of the parser itself: parentheses and signs.
  struct Depth {
    explicit Depth(ExpressionParser& of) : parser(of) {
      Check(++parser.depth_ <= parser.limits_.depth, "[template] line ", parser.Peek().line,
            ": expressions are nested more than ", parser.limits_.depth, " deep");
    }
    ~Depth() { --parser.depth_; }
    ExpressionParser& parser;
  };

  NodePtr New(Kind kind, std::string text = {}) const {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->text = std::move(text);
    node->line = Peek().line;
    return node;
  }
  void Add(Node& node, NodePtr child) const {
    if (child) node.depth = std::max(node.depth, child->depth + 1);
    Check(node.depth <= limits_.depth, "[template] line ", node.line, ": an expression is more than ",
          limits_.depth, " deep");
    node.children.push_back(std::move(child));
  }
  NodePtr Binary(std::string op, NodePtr left, NodePtr right) {
    NodePtr node = New(Kind::kBinary, std::move(op));
    Add(*node, std::move(left));
    Add(*node, std::move(right));
    return node;
  }
  template <typename Operand>
  NodePtr Chain(std::initializer_list<std::string_view> operators, const Operand& operand) {
    NodePtr left = operand();
    for (;;) {
      const auto* const found =
          std::find_if(operators.begin(), operators.end(), [&](std::string_view op) { return Is(op); });
      if (found == operators.end()) return left;
      Take();
      left = Binary(std::string(*found), std::move(left), operand());
    }
  }

  NodePtr And() {
    return Chain({"and"}, [this] { return Not(); });
  }
  NodePtr Not() {
    const Depth guard(*this);
    if (!TakeIf("not")) return Comparison();
    NodePtr node = New(Kind::kUnary, "not");
    Add(*node, Not());
    return node;
  }
  NodePtr Comparison() {
    NodePtr left = Sum();
    for (;;) {
      std::string op;
      for (const std::string_view each : {"==", "!=", "<=", ">=", "<", ">", "in"}) {
        if (Is(each)) op = each;
      }
      if (!op.empty()) {
        Take();
      } else if (Is("not") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == "in") {
        Take();
        Take();
        op = "not in";
      } else {
        return left;
      }
      left = Binary(op, std::move(left), Sum());
    }
  }
  NodePtr Sum() {
    return Chain({"+", "-", "~"}, [this] { return Product(); });
  }
  NodePtr Product() {
    return Chain({"*", "/", "//", "%"}, [this] { return Signed(); });
  }
  NodePtr Signed() {
    const Depth guard(*this);
    if (Is("-") || Is("+")) {
      NodePtr node = New(Kind::kUnary, Take().text);
      Add(*node, Signed());
      return node;
    }
    return Filtered(Postfix(Primary()));
  }

  NodePtr Filtered(NodePtr value) {
    for (;;) {
      if (TakeIf("|")) {
        NodePtr node = New(Kind::kFilter, Name());
        Add(*node, std::move(value));
        if (TakeIf("(")) Arguments(*node);
        value = Postfix(std::move(node));
      } else if (TakeIf("is")) {
        const bool negated = TakeIf("not");
        NodePtr node = New(Kind::kTest, Name());
        Add(*node, std::move(value));
        if (TakeIf("(")) {
          Arguments(*node);
        } else if (node->text == "equalto" || node->text == "eq" || node->text == "divisibleby" ||
                   node->text == "in" || node->text == "sameas") {
          Add(*node, Postfix(Primary()));
        }
        value = std::move(node);
        if (!negated) continue;
        NodePtr opposite = New(Kind::kUnary, "not");
        Add(*opposite, std::move(value));
        value = std::move(opposite);
      } else {
        return value;
      }
    }
  }

  // Behind the opening parenthesis.
  void Arguments(Node& call) {
    while (!TakeIf(")")) {
      if (Peek().kind == Token::Kind::kName && at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == "=" &&
          tokens_[at_ + 1].kind == Token::Kind::kOperator) {
        std::string name = Take().text;
        Take();
        NodePtr value = Expression();
        call.depth = std::max(call.depth, value->depth + 1);
        call.named.emplace_back(std::move(name), std::move(value));
      } else {
        Add(call, Expression());
      }
      if (!Is(")")) Expect(",");
    }
  }

  NodePtr Postfix(NodePtr value) {
    for (;;) {
      if (TakeIf(".")) {
        const Token name = Take();
        NodePtr node = New(Kind::kAttribute, name.text);
        Check(name.kind == Token::Kind::kName || name.kind == Token::Kind::kInteger, "[template] line ",
              name.line, ": expected a name behind \".\"");
        Add(*node, std::move(value));
        value = std::move(node);
      } else if (TakeIf("[")) {
        value = Subscript(std::move(value));
      } else if (TakeIf("(")) {
        NodePtr node = New(Kind::kCall);
        Add(*node, std::move(value));
        Arguments(*node);
        value = std::move(node);
      } else {
        return value;
      }
    }
  }

  NodePtr Subscript(NodePtr of) {
    NodePtr parts[3];
    int count = 0;
    bool slice = false;
    while (!Is("]")) {
      if (TakeIf(":")) {
        slice = true;
        Check(++count < 3, "[template] line ", Peek().line, ": a slice has more than three parts");
      } else {
        Check(parts[count] == nullptr, "[template] line ", Peek().line, ": expected \"]\"");
        parts[count] = Expression();
      }
    }
    Expect("]");
    NodePtr node = New(slice ? Kind::kSlice : Kind::kItem);
    Add(*node, std::move(of));
    Check(slice || parts[0] != nullptr, "[template] line ", Peek().line, ": nothing between brackets");
    for (int i = 0; i < (slice ? 3 : 1); ++i) Add(*node, std::move(parts[i]));
    return node;
  }

  NodePtr Literal(Value value) {
    NodePtr node = New(Kind::kLiteral);
    node->value = std::move(value);
    return node;
  }

  NodePtr Number(const Token& token) {
    if (token.kind == Token::Kind::kFloat) return Literal(std::stod(token.text));
    int64_t value = 0;
    const auto [end, error] =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    Check(error == std::errc(), "[template] line ", token.line, ": the number is too large");
    return Literal(value);
  }

  NodePtr Primary() {
    const Depth guard(*this);
    const Token token = Take();
    switch (token.kind) {
      case Token::Kind::kString: {
        std::string text = token.text;
        while (Peek().kind == Token::Kind::kString) text += Take().text;
        return Literal(text);
      }
      case Token::Kind::kInteger:
      case Token::Kind::kFloat:
        return Number(token);
      case Token::Kind::kName:
        if (token.text == "true" || token.text == "True") return Literal(true);
        if (token.text == "false" || token.text == "False") return Literal(false);
        if (token.text == "none" || token.text == "None") return Literal(nullptr);
        return New(Kind::kName, token.text);
      default:
        break;
    }
    if (token.text == "(") {
      NodePtr inner = Is(")") ? New(Kind::kList) : ExpressionList();
      Expect(")");
      return inner;
    }
    if (token.text == "[") {
      NodePtr list = New(Kind::kList);
      while (!TakeIf("]")) {
        Add(*list, Expression());
        if (!Is("]")) Expect(",");
      }
      return list;
    }
    if (token.text == "{") {
      NodePtr dictionary = New(Kind::kDictionary);
      while (!TakeIf("}")) {
        Add(*dictionary, Expression());
        Expect(":");
        Add(*dictionary, Expression());
        if (!Is("}")) Expect(",");
      }
      return dictionary;
    }
    Fail("[template] line ", token.line, ": \"", token.text, "\" is not understood here");
  }

  const std::vector<Token>& tokens_;
  const Limits& limits_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace lattice::text::jinja

#endif  // LATTICE_TEXT_JINJA_EXPRESSION_PARSER_H_
