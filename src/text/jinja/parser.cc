// The parser of templates: recursive descent, from tokens to nodes.
#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

#include "base/error.h"
#include "text/jinja/lexer.h"
#include "text/jinja/nodes.h"

namespace lattice::text::jinja {
namespace {

using Kind = Node::Kind;

// Parses the expressions in the tokens of one tag.
class ExpressionParser {
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

class TemplateParser {
 public:
  TemplateParser(std::vector<Segment> segments, const Limits& limits)
      : segments_(std::move(segments)), limits_(limits) {}

  NodePtr Run() {
    NodePtr all = Block({});
    Check(at_ == segments_.size(), "[template] line ", LineHere(), ": \"", Word(), "\" closes nothing");
    return all;
  }

 private:
  int LineHere() const { return at_ < segments_.size() ? segments_[at_].line : 0; }
  // The first word of the statement here; empty for other segments.
  std::string Word() const {
    const bool statement = at_ < segments_.size() && segments_[at_].kind == Segment::Kind::kStatement;
    return statement ? segments_[at_].tokens.front().text : "";
  }
  static NodePtr New(Kind kind, int line) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->line = line;
    return node;
  }
  void Add(Node& node, NodePtr child) const {
    if (child) node.depth = std::max(node.depth, child->depth + 1);
    Check(node.depth <= limits_.depth, "[template] line ", node.line, ": blocks are nested more than ",
          limits_.depth, " deep");
    node.children.push_back(std::move(child));
  }

  // Statements up to one that begins with a word of `ends`, which is not taken.
  NodePtr Block(std::initializer_list<std::string_view> ends) {
    Check(++depth_ <= limits_.depth, "[template] line ", LineHere(), ": blocks are nested more than ",
          limits_.depth, " deep");
    NodePtr block = New(Kind::kBlock, LineHere());
    while (at_ < segments_.size()) {
      const std::string word = Word();
      const bool closes = word == "else" || word == "elif" || word.starts_with("end");
      if (closes) break;
      if (NodePtr statement = Statement()) Add(*block, std::move(statement));
    }
    --depth_;
    const bool closed = std::find(ends.begin(), ends.end(), Word()) != ends.end();
    Check(closed || (ends.size() == 0 && at_ == segments_.size()), "[template] line ", block->line,
          ": a block that begins here is not closed");
    return block;
  }

  NodePtr Statement() {
    Segment& segment = segments_[at_];
    if (segment.kind == Segment::Kind::kText) {
      NodePtr node = New(Kind::kText, segment.line);
      node->text = std::move(segment.text);
      ++at_;
      return node;
    }
    if (segment.kind == Segment::Kind::kExpression) {
      ExpressionParser parser(segment.tokens, limits_);
      NodePtr node = New(Kind::kOutput, segment.line);
      Add(*node, parser.ExpressionList());
      parser.End();
      ++at_;
      return node;
    }
    const std::string word = Word();
    if (word == "if") return If();
    if (word == "for") return For();
    if (word == "set") return Set();
    if (word == "break" || word == "continue") {
      ++at_;
      return New(word == "break" ? Kind::kBreak : Kind::kContinue, segment.line);
    }
    if (word == "generation") {  // marks what training learns; changes no text
      ++at_;
      NodePtr block = Block({"endgeneration"});
      ++at_;
      return block;
    }
    Fail("[template] line ", segment.line, ": {% ", word,
         " %} is not supported; supported are if, for, set, break, continue, raw and generation");
  }

  ExpressionParser Open(const Segment& segment) const {
    ExpressionParser parser(segment.tokens, limits_);
    parser.Take();
    return parser;
  }

  NodePtr If() {
    NodePtr node = New(Kind::kIf, LineHere());
    while (Word() == "if" || Word() == "elif") {
      ExpressionParser parser = Open(segments_[at_]);
      Add(*node, parser.ExpressionList());
      parser.End();
      ++at_;
      Add(*node, Block({"elif", "else", "endif"}));
    }
    if (Word() == "else") {
      ++at_;
      Add(*node, nullptr);
      Add(*node, Block({"endif"}));
    }
    Check(Word() == "endif", "[template] line ", node->line, ": if has no endif");
    ++at_;
    return node;
  }

  NodePtr For() {
    NodePtr node = New(Kind::kFor, LineHere());
    ExpressionParser parser = Open(segments_[at_]);
    const bool parenthesis = parser.TakeIf("(");
    do {
      node->names.push_back(parser.Name());
    } while (parser.TakeIf(","));
    if (parenthesis) parser.Expect(")");
    parser.Expect("in");
    Add(*node, parser.Or());
    Add(*node, parser.TakeIf("if") ? parser.Or() : nullptr);
    Check(!parser.Is("recursive"), "[template] line ", node->line, ": recursive loops are not supported");
    parser.End();
    ++at_;
    Add(*node, Block({"else", "endfor"}));
    if (Word() == "else") {
      ++at_;
      Add(*node, Block({"endfor"}));
    }
    ++at_;
    return node;
  }

  NodePtr Set() {
    NodePtr node = New(Kind::kSet, LineHere());
    ExpressionParser parser = Open(segments_[at_]);
    node->names.push_back(parser.Name());
    if (parser.TakeIf(".")) node->names.push_back(parser.Name());
    Check(!parser.Is(","), "[template] line ", node->line, ": set with several names is not supported");
    if (parser.TakeIf("=")) {
      Add(*node, parser.ExpressionList());
      parser.End();
      ++at_;
      return node;
    }
    parser.End();
    ++at_;
    node->text = "block";
    Add(*node, Block({"endset"}));
    ++at_;
    return node;
  }

  std::vector<Segment> segments_;
  const Limits& limits_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

NodePtr Parse(std::string_view source, const Limits& limits) {
  Check(source.size() <= limits.template_bytes, "[template] it has ", source.size(), " bytes; at most ",
        limits.template_bytes, " are read");
  return TemplateParser(Lex(source), limits).Run();
}

}  // namespace lattice::text::jinja
