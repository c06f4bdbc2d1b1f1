// JSON and JSON schemas as grammars.
#include "text/grammar/json_grammar.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/error.h"

namespace lattice::text::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostLength = 65536, kMostItems = 10'000, kMostValues = 1000;

// Keywords that say nothing about which texts are valid.
const std::set<std::string>& Annotations() {
  static const std::set<std::string> kNames = {"title",       "description", "default",  "examples",
                                               "$schema",     "$id",         "$comment", "$defs",
                                               "definitions", "deprecated",  "readOnly", "writeOnly"};
  return kNames;
}

// The parts that all JSON grammars share.
class JsonParts {
 public:
  explicit JsonParts(Grammar& grammar) : g(grammar) {
    hex_ = g.Choice({g.Range('0', '9'), g.Range('a', 'f'), g.Range('A', 'F')});
    tail_ = g.Range(0x80, 0xBF);
    character_ = Character();
    comma = g.Sequence({g.Literal(","), g.Optional(g.Literal(" "))});
    colon = g.Sequence({g.Literal(":"), g.Optional(g.Literal(" "))});
    value_ = g.NewRule();
    g.SetRule(value_, g.Choice({String(0, -1), Number(), Literals(), AnyObject(), Array(Value(), 0, -1)}));
  }

  const Part* Value() { return g.Rule(value_); }
  const Part* String(int64_t least, int64_t most) {
    return g.Sequence({g.Literal("\""), g.Repeat(character_, least, most), g.Literal("\"")});
  }
  const Part* Integer() {
    const Part* const digits = g.Sequence({g.Range('1', '9'), g.Repeat(g.Range('0', '9'), 0, 14)});
    return g.Sequence({g.Optional(g.Literal("-")), g.Choice({g.Literal("0"), digits})});
  }
  const Part* Number() {
    const Part* const digit = g.Range('0', '9');
    const Part* const sign = g.Optional(g.Choice({g.Literal("+"), g.Literal("-")}));
    return g.Sequence(
        {Integer(), g.Optional(g.Sequence({g.Literal("."), g.Repeat(digit, 1, 16)})),
         g.Optional(g.Sequence({g.Choice({g.Literal("e"), g.Literal("E")}), sign, g.Repeat(digit, 1, 2)}))});
  }
  const Part* Literals() { return g.Choice({g.Literal("true"), g.Literal("false"), g.Literal("null")}); }
  const Part* AnyObject() {
    const Part* const pair = g.Sequence({String(0, -1), colon, Value()});
    return Listed("{", pair, "}", 0, -1);
  }
  const Part* Array(const Part* item, int64_t least, int64_t most) {
    return Listed("[", item, "]", least, most);
  }

  Grammar& g;
  const Part *comma, *colon;

 private:
  const Part* Listed(const char* open, const Part* item, const char* close, int64_t least, int64_t most) {
    const Part* const more =
        g.Repeat(g.Sequence({comma, item}), std::max<int64_t>(0, least - 1), most < 0 ? -1 : most - 1);
    const Part* some = g.Sequence({item, more});
    if (most == 0) some = g.Sequence({});
    if (least == 0 && most != 0) some = g.Optional(some);
    return g.Sequence({g.Literal(open), some, g.Literal(close)});
  }

  const Part* Tails(const Part* first, int count) {
    return g.Sequence({first, g.Repeat(tail_, count, count)});
  }

  // One character of a string: valid UTF-8, escapes of everything but surrogates.
  const Part* Character() {
    std::bitset<256> plain;
    for (size_t c = 0x20; c < 0x80; ++c) plain.set(c, c != '"' && c != '\\' && c != 0x7F);
    std::bitset<256> escaped, first_hex;
    for (const char c : std::string_view("\"\\/bfnrt")) escaped.set(static_cast<unsigned char>(c));
    for (const char c : std::string_view("0123456789abcefABCEF"))
      first_hex.set(static_cast<unsigned char>(c));
    const Part* const unicode =
        g.Sequence({g.Literal("u"),
                    g.Choice({g.Sequence({g.Bytes(first_hex), hex_}),
                              g.Sequence({g.Choice({g.Literal("d"), g.Literal("D")}), g.Range('0', '7')})}),
                    hex_, hex_});
    const auto lead = [&](int first, int last, int low, int high, int more) {
      return g.Sequence({g.Range(first, last), Tails(g.Range(low, high), more)});
    };
    return g.Choice({g.Bytes(plain), g.Sequence({g.Literal("\\"), g.Choice({g.Bytes(escaped), unicode})}),
                     g.Sequence({g.Range(0xC2, 0xDF), tail_}), lead(0xE0, 0xE0, 0xA0, 0xBF, 1),
                     lead(0xE1, 0xEC, 0x80, 0xBF, 1), lead(0xED, 0xED, 0x80, 0x9F, 1),
                     lead(0xEE, 0xEF, 0x80, 0xBF, 1), lead(0xF0, 0xF0, 0x90, 0xBF, 2),
                     lead(0xF1, 0xF3, 0x80, 0xBF, 2), lead(0xF4, 0xF4, 0x80, 0x8F, 2)});
  }

  const Part *hex_ = nullptr, *tail_ = nullptr, *character_ = nullptr;
  size_t value_ = 0;
};

class SchemaCompiler {
 public:
  SchemaCompiler(const Json& root, Grammar& grammar) : root_(root), g_(grammar), parts_(grammar) {}

  // `place` names the schema in errors: "schema.properties.name".
  const Part* Compile(const Json& schema, const std::string& place) {
    if (schema.is_boolean() && schema.get<bool>()) return parts_.Value();
    Check(schema.is_object(), "[schema] ", place, " is no object");
    if (schema.contains("$ref")) return Reference(schema, place);
    if (schema.contains("const")) {
      Known(schema, {"const", "type"}, place);
      return g_.Literal(schema["const"].dump());
    }
    if (schema.contains("enum")) return Enumeration(schema, place);
    if (schema.contains("anyOf")) return AnyOf(schema, place);
    const auto type = schema.find("type");
    if (type == schema.end()) {
      if (schema.contains("properties")) return Typed("object", schema, place);
      Known(schema, {}, place);
      return parts_.Value();
    }
    if (type->is_string()) return Typed(type->get<std::string>(), schema, place);
    Check(type->is_array() && !type->empty(), "[schema] ", place, ".type is no name and no list of names");
    std::vector<const Part*> choices;
    for (const Json& each : *type) {
      Check(each.is_string(), "[schema] ", place, ".type is no name and no list of names");
      choices.push_back(Typed(each.get<std::string>(), schema, place));
    }
    return g_.Choice(std::move(choices));
  }

 private:
  static void Known(const Json& schema, std::set<std::string> names, const std::string& place) {
    for (const auto& [name, value] : schema.items()) {
      if (names.contains(name) || Annotations().contains(name)) continue;
      Fail("[schema] ", place, ": \"", name.substr(0, 64),
           "\" is not supported here; supported are type, properties, required, additionalProperties, items, "
           "minItems, maxItems, minLength, maxLength, enum, const, anyOf and $ref");
    }
  }

  static int64_t Count(const Json& schema, const char* name, int64_t otherwise, int64_t most,
                       const std::string& place) {
    const auto found = schema.find(name);
    if (found == schema.end()) return otherwise;
    Check(found->is_number_integer() && found->get<int64_t>() >= 0 && found->get<int64_t>() <= most,
          "[schema] ", place, ".", name, " is not a number from 0 to ", most);
    return found->get<int64_t>();
  }

  const Part* Reference(const Json& schema, const std::string& place) {
    Known(schema, {"$ref"}, place);
    Check(schema["$ref"].is_string(), "[schema] ", place, ".$ref is no string");
    const std::string name = schema["$ref"].get<std::string>();
    const auto known = rules_.find(name);
    if (known != rules_.end()) return g_.Rule(known->second);
    const Json* target = name == "#" ? &root_ : nullptr;
    for (const std::string_view folder : {"$defs", "definitions"}) {
      const std::string prefix = StrCat("#/", folder, "/");
      const auto all = root_.find(std::string(folder));
      if (!name.starts_with(prefix) || all == root_.end() || !all->is_object()) continue;
      const auto found = all->find(name.substr(prefix.size()));
      if (found != all->end()) target = &*found;
    }
    Check(target != nullptr, "[schema] ", place, ".$ref is \"", name.substr(0, 64),
          "\", which is not there; expected #, #/$defs/NAME or #/definitions/NAME");
    const size_t rule = rules_[name] = g_.NewRule();
    g_.SetRule(rule, Compile(*target, name.substr(0, 64)));
    return g_.Rule(rule);
  }

  const Part* Enumeration(const Json& schema, const std::string& place) {
    Known(schema, {"enum", "type"}, place);
    const Json& values = schema["enum"];
    Check(values.is_array() && !values.empty() && static_cast<int64_t>(values.size()) <= kMostValues,
          "[schema] ", place, ".enum is not a list of 1 to ", kMostValues, " values");
    std::vector<const Part*> choices;
    for (const Json& value : values) choices.push_back(g_.Literal(value.dump()));
    return g_.Choice(std::move(choices));
  }

  const Part* AnyOf(const Json& schema, const std::string& place) {
    Known(schema, {"anyOf"}, place);
    const Json& all = schema["anyOf"];
    Check(all.is_array() && !all.empty(), "[schema] ", place, ".anyOf is not a list of schemas");
    std::vector<const Part*> choices;
    for (size_t i = 0; i < all.size(); ++i)
      choices.push_back(Compile(all[i], StrCat(place, ".anyOf[", i, "]")));
    return g_.Choice(std::move(choices));
  }

  const Part* Typed(const std::string& type, const Json& schema, const std::string& place) {
    Known(schema,
          {"type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
           "minLength", "maxLength"},
          place);
    if (type == "string") {
      const int64_t least = Count(schema, "minLength", 0, kMostLength, place);
      const int64_t most = Count(schema, "maxLength", -1, kMostLength, place);
      Check(most < 0 || least <= most, "[schema] ", place, ": minLength is more than maxLength");
      return parts_.String(least, most);
    }
    if (type == "integer") return parts_.Integer();
    if (type == "number") return parts_.Number();
    if (type == "boolean") return g_.Choice({g_.Literal("true"), g_.Literal("false")});
    if (type == "null") return g_.Literal("null");
    if (type == "array") {
      const int64_t least = Count(schema, "minItems", 0, kMostItems, place);
      const int64_t most = Count(schema, "maxItems", -1, kMostItems, place);
      Check(most < 0 || least <= most, "[schema] ", place, ": minItems is more than maxItems");
      const auto items = schema.find("items");
      return parts_.Array(items == schema.end() ? parts_.Value() : Compile(*items, place + ".items"), least,
                          most);
    }
    Check(type == "object", "[schema] ", place, ".type is \"", type.substr(0, 64),
          "\"; expected object, array, string, number, integer, boolean or null");
    return Object(schema, place);
  }

  const Part* Object(const Json& schema, const std::string& place) {
    const auto properties = schema.find("properties");
    std::set<std::string> required;
    if (const auto names = schema.find("required"); names != schema.end()) {
      Check(names->is_array(), "[schema] ", place, ".required is no list");
      for (const Json& name : *names) {
        Check(name.is_string(), "[schema] ", place, ".required has something that is no name");
        required.insert(name.get<std::string>());
      }
    }
    if (properties == schema.end() || properties->empty()) {
      Check(required.empty(), "[schema] ", place, ".required names what .properties does not have");
      const auto more = schema.find("additionalProperties");
      const bool closed = more != schema.end() && more->is_boolean() && !more->get<bool>();
      return closed || properties != schema.end() ? g_.Literal("{}") : parts_.AnyObject();
    }
    Check(properties->is_object(), "[schema] ", place, ".properties is no object");
    // From the last property to the first: `begun`, when one has been written before, and `fresh`, when none has.
    const Part *begun = g_.Sequence({}), *fresh = begun;
    for (auto at = properties->end(); at != properties->begin();) {
      --at;
      const bool needed = required.erase(at.key()) > 0;
      const Part* const pair =
          g_.Sequence({g_.Literal(Json(at.key()).dump()), parts_.colon,
                       Compile(at.value(), place + ".properties." + at.key().substr(0, 64))});
      const Part* const next = g_.Sequence({parts_.comma, pair, begun});
      const Part* const first = g_.Sequence({pair, begun});
      fresh = needed ? first : g_.Choice({first, fresh});
      begun = needed ? next : g_.Choice({next, begun});
    }
    Check(required.empty(), "[schema] ", place, ".required names \"",
          required.empty() ? "" : required.begin()->substr(0, 64), "\", which .properties does not have");
    return g_.Sequence({g_.Literal("{"), fresh, g_.Literal("}")});
  }

  const Json& root_;
  Grammar& g_;
  JsonParts parts_;
  std::map<std::string, size_t> rules_;
};

}  // namespace

std::shared_ptr<const Grammar> JsonObjectGrammar() {
  const auto grammar = std::make_shared<Grammar>();
  JsonParts parts(*grammar);
  grammar->root = parts.AnyObject();
  return grammar;
}

std::shared_ptr<const Grammar> JsonSchemaGrammar(const Json& schema) {
  const auto grammar = std::make_shared<Grammar>();
  grammar->root = SchemaCompiler(schema, *grammar).Compile(schema, "schema");
  const Follower possible(*grammar);  // throws when no text follows it
  return grammar;
}

}  // namespace lattice::text::grammar
