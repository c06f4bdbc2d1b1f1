// The evaluator of templates: walks the tree, within limits.
#include "text/jinja/evaluator.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "text/jinja/operations.h"
#include "text/jinja/values.h"

namespace lattice::text::jinja {
namespace {

using Kind = Node::Kind;

class Evaluator {
 public:
  Evaluator(const Value& variables, const Limits& limits) : limits_(limits) {
    scopes_.emplace_back();
    for (const auto& [name, value] : variables.items()) scopes_.back()[name] = value;
  }

  std::string Run(const Node& block) {
    Execute(block);
    return std::move(out_);
  }

 private:
  enum class Flow { kOn, kBreak, kContinue };

  void Step(const Node& node) {
    Check(++steps_ <= limits_.steps, "[template] line ", node.line, ": it has taken ", limits_.steps,
          " steps and has not ended");
  }

  Value* Find(const std::string& name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) return &found->second;
    }
    return nullptr;
  }

  void Write(const std::string& text) {
    Check(out_.size() + text.size() <= limits_.output_bytes, "[template] the text has more than ",
          limits_.output_bytes, " bytes");
    out_ += text;
  }

  Flow Execute(const Node& node) {
    Step(node);
    switch (node.kind) {
      case Kind::kBlock:
        for (const NodePtr& child : node.children) {
          const Flow flow = Execute(*child);
          if (flow != Flow::kOn) return flow;
        }
        return Flow::kOn;
      case Kind::kText:
        Write(node.text);
        return Flow::kOn;
      case Kind::kOutput:
        Write(TextOf(*Operand(*this, *node.children[0])));
        return Flow::kOn;
      case Kind::kIf:
        for (size_t i = 0; i < node.children.size(); i += 2) {
          if (!node.children[i] || IsTrue(*Operand(*this, *node.children[i])))
            return Execute(*node.children[i + 1]);
        }
        return Flow::kOn;
      case Kind::kFor:
        For(node);
        return Flow::kOn;
      case Kind::kSet:
        Set(node);
        return Flow::kOn;
      case Kind::kBreak:
        return Flow::kBreak;
      default:
        return Flow::kContinue;
    }
  }

  void Set(const Node& node) {
    Value value;
    if (node.text == "block") {
      std::string before = std::exchange(out_, {});
      Execute(*node.children[0]);
      value = std::exchange(out_, std::move(before));
    } else {
      value = Evaluate(*node.children[0]);
    }
    if (node.names.size() == 1) {
      scopes_.back()[node.names[0]] = std::move(value);
      return;
    }
    Value* const object = Find(node.names[0]);
    Check(object != nullptr && object->is_object(), "[template] line ", node.line, ": ", node.names[0],
          " is no namespace, so ", node.names[1], " of it cannot be set");
    (*object)[node.names[1]] = std::move(value);
    CheckSize(*object, limits_);
  }

  void Bind(const Node& node, const Value& item, std::map<std::string, Value>& scope) const {
    if (node.names.size() == 1) {
      scope[node.names[0]] = item;
      return;
    }
    Check(item.is_array() && item.size() == node.names.size(), "[template] line ", node.line,
          ": the loop has ", node.names.size(), " names for ", KindName(item));
    for (size_t i = 0; i < node.names.size(); ++i) scope[node.names[i]] = item[i];
  }

  // The elements of the loop's sequence that pass its condition.
  Value Elements(const Node& node) {
    Value all = Evaluate(*node.children[0]);
    if (all.is_discarded()) return Value::array();
    if (!all.is_array()) all = ApplyFilter("list", all, {}, limits_);
    if (!node.children[1]) return all;
    Value passed = Value::array();
    for (const Value& item : all) {
      scopes_.emplace_back();
      Bind(node, item, scopes_.back());
      if (IsTrue(Evaluate(*node.children[1]))) passed.push_back(item);
      scopes_.pop_back();
    }
    return passed;
  }

  void For(const Node& node) {
    const Value items = Elements(node);
    const auto count = static_cast<int64_t>(items.size());
    if (count == 0 && node.children.size() > 3) {
      Execute(*node.children[3]);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      steps_ += 8;  // what a turn costs before anything in it is done
      std::map<std::string, Value> scope;
      Bind(node, items[static_cast<size_t>(i)], scope);
      Value loop = {
          {"index", i + 1},  {"index0", i},           {"first", i == 0},           {"last", i + 1 == count},
          {"length", count}, {"revindex", count - i}, {"revindex0", count - i - 1}};
      if (i > 0) loop["previtem"] = items[static_cast<size_t>(i - 1)];
      if (i + 1 < count) loop["nextitem"] = items[static_cast<size_t>(i + 1)];
      scope["loop"] = std::move(loop);
      scopes_.push_back(std::move(scope));
      const Flow flow = Execute(*node.children[2]);
      scopes_.pop_back();
      if (flow == Flow::kBreak) break;
    }
  }

  // A value that is used where it stands, or that has been made for this use. Conversations are long; copying them
  // for every look at a message would take time that grows with the square of their length.
  class Operand {
   public:
    Operand(Evaluator& evaluator, const Node& node) : at_(evaluator.Locate(node)) {
      if (at_ == nullptr) made_ = evaluator.Evaluate(node);
    }
    const Value& operator*() const { return at_ == nullptr ? made_ : *at_; }
    const Value* operator->() const { return &**this; }

   private:
    const Value* at_;
    Value made_;
  };

  // Where the value of a name, or of an element of it, stands; null when it does not stand anywhere. The place is
  // valid until a variable is set.
  const Value* Locate(const Node& node) {
    if (node.kind == Kind::kName) {
      Step(node);
      return Find(node.text);
    }
    if (node.kind != Kind::kAttribute && node.kind != Kind::kItem) return nullptr;
    const Value* const of = Locate(*node.children[0]);
    if (of == nullptr) return nullptr;
    if (node.kind == Kind::kAttribute) return Element(*of, Value(node.text));
    const Operand key(*this, *node.children[1]);
    return Element(*of, *key);
  }

  // Null when there is none.
  static const Value* Element(const Value& of, const Value& key) {
    if (of.is_object() && key.is_string()) {
      const auto found = of.find(key.get_ref<const std::string&>());
      return found == of.end() ? nullptr : &*found;
    }
    if (!of.is_array() || !key.is_number_integer()) return nullptr;
    const auto count = static_cast<int64_t>(of.size());
    int64_t at = key.get<int64_t>();
    if (at < 0) at += count;
    return at >= 0 && at < count ? &of[static_cast<size_t>(at)] : nullptr;
  }

  Value Evaluate(const Node& node) {
    Step(node);
    Value value = Computed(node);
    CheckSize(value, limits_);
    return value;
  }

  Value Computed(const Node& node) {
    switch (node.kind) {
      case Kind::kLiteral:
        return node.value;
      case Kind::kName: {
        const Value* const found = Find(node.text);
        return found == nullptr ? Undefined() : *found;
      }
      case Kind::kAttribute: {
        const Operand of(*this, *node.children[0]);
        return Member(node, *of, Value(node.text));
      }
      case Kind::kItem: {
        const Operand of(*this, *node.children[0]), key(*this, *node.children[1]);
        return Member(node, *of, *key);
      }
      case Kind::kSlice:
        return Slice(node);
      case Kind::kCall:
        return Call(node);
      case Kind::kFilter: {
        const Operand of(*this, *node.children[0]);
        return ApplyFilter(node.text, *of, ArgumentsOf(node), limits_);
      }
      case Kind::kTest: {
        const Operand of(*this, *node.children[0]);
        return ApplyTest(node.text, *of, ArgumentsOf(node));
      }
      case Kind::kUnary:
        return Unary(node);
      case Kind::kBinary:
        return Binary(node);
      case Kind::kChoice:
        if (IsTrue(Evaluate(*node.children[1]))) return Evaluate(*node.children[0]);
        return node.children.size() > 2 ? Evaluate(*node.children[2]) : Undefined();
      case Kind::kList: {
        Value list = Value::array();
        for (const NodePtr& child : node.children) list.push_back(Evaluate(*child));
        return list;
      }
      default: {
        Value dictionary = Value::object();
        for (size_t i = 0; i + 1 < node.children.size(); i += 2)
          dictionary[TextOf(Evaluate(*node.children[i]))] = Evaluate(*node.children[i + 1]);
        return dictionary;
      }
    }
  }

  Value Member(const Node& node, const Value& of, const Value& key) const {
    Check(!of.is_discarded(), "[template] line ", node.line, ": ", TextOf(key), " of something undefined");
    if (of.is_string() && key.is_number_integer())
      return Member(node, ApplyFilter("list", of, {}, limits_), key);
    const Value* const found = Element(of, key);
    return found == nullptr ? Undefined() : *found;
  }

  std::optional<int64_t> Bound(const NodePtr& node) {
    if (!node) return std::nullopt;
    const Value value = Evaluate(*node);
    if (value.is_null()) return std::nullopt;
    Check(value.is_number_integer(), "[template] line ", node->line, ": a slice by ", KindName(value));
    return value.get<int64_t>();
  }

  Value Slice(const Node& node) {
    const Operand whole(*this, *node.children[0]);
    const Value& of = *whole;
    Check(of.is_array() || of.is_string(), "[template] line ", node.line, ": a slice of ", KindName(of));
    const int64_t step = Bound(node.children[3]).value_or(1);
    Check(step != 0, "[template] line ", node.line, ": a slice in steps of 0");
    const Value letters = of.is_array() ? Value() : ApplyFilter("list", of, {}, limits_);
    const Value& items = of.is_array() ? of : letters;
    const auto count = static_cast<int64_t>(items.size());
    const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? count : count - 1;
    const auto place = [&](std::optional<int64_t> at, int64_t otherwise) {
      if (!at) return otherwise;
      return std::clamp(*at < 0 ? *at + count : *at, lowest, highest);
    };
    const int64_t first = place(Bound(node.children[1]), step > 0 ? 0 : count - 1);
    const int64_t last = place(Bound(node.children[2]), step > 0 ? count : -1);
    Value out = Value::array();
    for (int64_t i = first; step > 0 ? i < last : i > last; i += step)
      out.push_back(items[static_cast<size_t>(i)]);
    return of.is_array() ? out : ApplyFilter("join", out, {}, limits_);
  }

  Arguments ArgumentsOf(const Node& node) {
    Arguments out;
    for (size_t i = 1; i < node.children.size(); ++i) out.values.push_back(Evaluate(*node.children[i]));
    for (const auto& [name, value] : node.named) out.named.emplace_back(name, Evaluate(*value));
    return out;
  }

  Value Call(const Node& node) {
    const Node& callee = *node.children[0];
    if (callee.kind == Kind::kAttribute) {
      const Operand object(*this, *callee.children[0]);
      return CallMethod(*object, callee.text, ArgumentsOf(node), limits_);
    }
    Check(callee.kind == Kind::kName, "[template] line ", node.line, ": what is called is not a name");
    const Arguments arguments = ArgumentsOf(node);
    if (callee.text == "raise_exception")
      Fail("[template] ", arguments.Text(0, "message", "", "raise_exception"));
    if (callee.text == "namespace" || callee.text == "dict") {
      Value object = Value::object();
      for (const auto& [name, value] : arguments.named) object[name] = value;
      return object;
    }
    if (callee.text == "range") return RangeOf(arguments, limits_);
    if (callee.text == "strftime_now") return TimeNow(arguments.Text(0, "format", "", "strftime_now"));
    Fail("[template] line ", node.line, ": there is no function ", callee.text,
         "; there are raise_exception, namespace, dict, range and strftime_now");
  }

  Value Unary(const Node& node) {
    const Operand operand(*this, *node.children[0]);
    const Value& value = *operand;
    if (node.text == "not") return !IsTrue(value);
    Check(value.is_number(), "[template] line ", node.line, ": ", node.text, " of ", KindName(value));
    if (node.text == "+") return value;
    if (value.is_number_float()) return -value.get<double>();
    return static_cast<int64_t>(0 - static_cast<uint64_t>(value.get<int64_t>()));
  }

  Value Binary(const Node& node) {
    const Operand first(*this, *node.children[0]);
    const Value& left = *first;
    if (node.text == "and") return IsTrue(left) ? Evaluate(*node.children[1]) : left;
    if (node.text == "or") return IsTrue(left) ? left : Evaluate(*node.children[1]);
    const Operand second(*this, *node.children[1]);
    const Value& right = *second;
    if (node.text == "==") return Same(left, right);
    if (node.text == "!=") return !Same(left, right);
    if (node.text == "~") return TextOf(left) + TextOf(right);
    if (node.text == "in") return Contains(node, right, left);
    if (node.text == "not in") return !Contains(node, right, left);
    if (node.text == "+" && left.is_string() && right.is_string())
      return left.get<std::string>() + right.get<std::string>();
    if (node.text == "+" && left.is_array() && right.is_array()) {
      Value list = left;
      list.insert(list.end(), right.begin(), right.end());
      return list;
    }
    if (left.is_string() && right.is_string() && (node.text == "<" || node.text == ">")) {
      const int order = left.get<std::string>().compare(right.get<std::string>());
      return node.text == "<" ? order < 0 : order > 0;
    }
    Check((left.is_number() || left.is_boolean()) && (right.is_number() || right.is_boolean()),
          "[template] line ", node.line, ": ", node.text, " of ", KindName(left), " and ", KindName(right));
    return Arithmetic(node, left, right);
  }

  const Limits& limits_;
  int64_t steps_ = 0;
  std::vector<std::map<std::string, Value>> scopes_;
  std::string out_;
};

}  // namespace

std::string Render(const Node& parsed, const Value& variables, const Limits& limits) {
  return Evaluator(variables, limits).Run(parsed);
}

}  // namespace lattice::text::jinja
