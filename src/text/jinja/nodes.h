// The syntax tree of a template.
#ifndef LATTICE_TEXT_JINJA_NODES_H_
#define LATTICE_TEXT_JINJA_NODES_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/limits.h"

namespace lattice::text::jinja {

// A value of the template language. Undefined is json's "discarded".
using Value = nlohmann::ordered_json;
inline Value Undefined() { return Value(nlohmann::ordered_json::value_t::discarded); }

struct Node;
using NodePtr = std::unique_ptr<Node>;

struct Node {
  enum class Kind {
    // Expressions. `children` are the operands.
    kLiteral,    // value
    kName,       // text
    kAttribute,  // child . text
    kItem,       // child [ child ]
    kSlice,      // child [ child : child : child ], null where left out
    kCall,       // child ( children, named )
    kFilter,     // child | text ( children, named )
    kTest,       // child is text ( children )
    kUnary,      // text child
    kBinary,     // child text child
    kChoice,     // child if child else child
    kList,
    kDictionary,  // keys and values in turn
    // Statements.
    kText,    // text
    kOutput,  // child
    kIf,      // condition and block in turn; a condition that is null: else
    kFor,     // targets in `names`; children: sequence, condition or null, block, else block or null
    kSet,     // names: target, or object and attribute; child: the value, or a block if `text` is "block"
    kBreak,
    kContinue,
    kBlock,  // children one after the other
  };

  Kind kind = Kind::kBlock;
  std::string text;
  Value value;
  std::vector<NodePtr> children;
  std::vector<std::pair<std::string, NodePtr>> named;  // arguments of a call or filter
  std::vector<std::string> names;
  int line = 1, depth = 1;
};

// Throws Error that names the line and what is not understood or not supported.
NodePtr Parse(std::string_view source, const Limits& limits);

}  // namespace lattice::text::jinja

#endif  // LATTICE_TEXT_JINJA_NODES_H_
