// The parser of templates: statements, by recursive descent; expressions are in expression_parser.h.
#include <algorithm>
#include <initializer_list>

#include "base/error.h"
#include "text/jinja/expression_parser.h"
#include "text/jinja/lexer.h"
#include "text/jinja/nodes.h"

namespace lattice::text::jinja {
namespace {

using Kind = Node::Kind;

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
