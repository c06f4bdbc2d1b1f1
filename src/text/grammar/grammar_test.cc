#include "text/grammar/grammar.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/bytes.h"
#include "text/grammar/json_grammar.h"
#include "text/grammar/token_constraint.h"

namespace lattice::text::grammar {
namespace {

using Json = nlohmann::ordered_json;

// Whether the text follows the grammar to its end.
bool Matches(const Grammar& grammar, const std::string& text) {
  Follower follower(grammar);
  const State* state = follower.start();
  for (const char byte : text) {
    state = follower.Next(state, static_cast<unsigned char>(byte));
    if (state == nullptr) return false;
  }
  return Follower::MayEnd(state);
}

TEST(JsonGrammar, FollowsJson) {
  const auto grammar = JsonObjectGrammar();
  for (const char* right :
       {"{}", R"({"a":1})", R"({"a": -0.5e+3, "b": [true, false, null, {}], "": "x\n\u00e9"})",
        R"({"é世😀":[[[]]]})", R"({"a":{"b":{"c":[0,10,"\"\\"]}}})"}) {
    EXPECT_TRUE(Matches(*grammar, right)) << right;
    EXPECT_FALSE(Json::parse(right).is_discarded());
  }
  for (const char* wrong : {"",
                            "[]",
                            "1",
                            "{",
                            R"({"a"})",
                            R"({"a":})",
                            R"({"a":01})",
                            R"({"a":1,})",
                            R"({a:1})",
                            R"({"a":1}})",
                            R"({"a":tru})",
                            "{\"a\":\"\n\"}",
                            R"({"a":"\x"})",
                            R"({"a":"\ud800"})",
                            "{\"a\":\"\xff\"}",
                            "{\"a\":\"\xed\xa0\x80\"}",
                            "{\"a\":\"\xc0\x80\"}",
                            R"({"a":+1})",
                            R"({"a":.5})",
                            R"({"a":1.})"})
    EXPECT_FALSE(Matches(*grammar, wrong)) << wrong;
}

TEST(JsonGrammar, FollowsSchemas) {
  const auto grammar = JsonSchemaGrammar(Json::parse(R"({
    "type": "object", "title": "a person", "additionalProperties": false, "required": ["name", "tags"],
    "properties": {
      "name": {"type": "string", "minLength": 1, "maxLength": 3},
      "age": {"type": ["integer", "null"]},
      "tags": {"type": "array", "items": {"enum": ["a", "b", 3]}, "minItems": 1, "maxItems": 2},
      "next": {"anyOf": [{"$ref": "#"}, {"const": "end"}]}}})"));
  for (const char* right : {R"({"name":"x","tags":["a"]})", R"({"name":"xyz","age":null,"tags":["b",3]})",
                            R"({"name": "é", "age": 5, "tags": ["a", "a"], "next": "end"})",
                            R"({"name":"x","tags":[3],"next":{"name":"y","tags":["b"]}})"})
    EXPECT_TRUE(Matches(*grammar, right)) << right;
  for (const char* wrong :
       {R"({"name":"","tags":["a"]})", R"({"name":"wxyz","tags":["a"]})", R"({"name":"x"})",
        R"({"tags":["a"],"name":"x"})", R"({"name":"x","tags":[]})", R"({"name":"x","tags":["a","a","a"]})",
        R"({"name":"x","tags":["c"]})", R"({"name":"x","age":1.5,"tags":["a"]})",
        R"({"name":"x","tags":["a"],"more":1})"})
    EXPECT_FALSE(Matches(*grammar, wrong)) << wrong;
}

std::string SchemaError(const std::string& text) {
  try {
    JsonSchemaGrammar(Json::parse(text));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(JsonGrammar, RefusesWhatItCannotKeep) {
  for (const auto& [schema, says] :
       {std::pair{R"({"type": "string", "pattern": "a+"})", "\"pattern\" is not supported"},
        {R"({"type": "object", "properties": {"a": {"type": "number", "minimum": 3}}})",
         "schema.properties.a"},
        {R"({"type": "strnig"})", "strnig"},
        {R"({"$ref": "#/$defs/missing"})", "missing"},
        {R"({"type": "object", "properties": {}, "required": ["a"]})", "required"},
        {R"({"type": "string", "maxLength": -1})", "maxLength"},
        {R"({"enum": []})", "enum"},
        {R"({"type": "string", "minLength": 5, "maxLength": 4})", "minLength"},
        {R"({"$ref": "#"})", "no text follows"},
        {R"({"allOf": []})", "allOf"}})
    EXPECT_NE(SchemaError(schema).find(says), std::string::npos) << schema << ": " << SchemaError(schema);
}

TEST(JsonGrammar, CostsAreBounded) {
  // Each level doubles the ways to go on.
  EXPECT_NE(SchemaError(R"({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "string"}]})"), "");
  std::string values = R"({"enum": [)";
  for (int i = 0; i < 1000; ++i) values += StrCat('"', std::string(200, 'x'), i, "\",");
  values.back() = ']';
  EXPECT_NE(SchemaError(values + "}").find("parts"), std::string::npos);
  // Nested as deeply as a model may like: the text ends at kMostDepth.
  const auto grammar = JsonObjectGrammar();
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100; ++i) deep += "[";
  Follower follower(*grammar);
  const State* state = follower.start();
  size_t read = 0;
  while (read < deep.size() && state != nullptr)
    state = follower.Next(state, static_cast<unsigned char>(deep[read++]));
  EXPECT_EQ(state, nullptr);
  EXPECT_GT(read, 50u);
}

// Definitions of which each has the next one twice: 2^levels ways to go on, all with different frames.
std::string Doubling(int levels, const std::string& leaf) {
  std::string defs = StrCat("\"d", levels, "\": ", leaf);
  for (int i = levels; i-- > 0;)
    defs += StrCat(", \"d", i, "\": {\"anyOf\": [{\"$ref\": \"#/$defs/d", i + 1,
                   "\"}, {\"$ref\": \"#/$defs/d", i + 1, "\"}]}");
  return StrCat("{\"$defs\": {", defs, "}, \"$ref\": \"#/$defs/d0\"}");
}

TEST(JsonGrammar, AmbiguityCostsBoundedTimeAndMemory) {
  for (const int levels : {8, 12, 14, 16, 18}) {
    try {
      const auto grammar = JsonSchemaGrammar(Json::parse(Doubling(levels, R"({"type": "string"})")));
      Follower follower(*grammar);
      const State* state = follower.Next(follower.start(), '"');
      for (int i = 0; i < 100'000; ++i) {
        state = follower.Next(state, 'x');
        ASSERT_NE(state, nullptr);
        ASSERT_LE(follower.bytes(), Follower::kMostBytes);
      }
      ADD_FAILURE() << levels << " levels never cost too much";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("too ambiguous"), std::string::npos) << error.what();
    }
  }
}

TEST(JsonGrammar, ThousandsOfOptionalPropertiesAreNoDeepRecursion) {
  std::string schema = R"({"type": "object", "properties": {)";
  for (int i = 0; i < 4000; ++i) schema += StrCat(i == 0 ? "" : ",", "\"", i, "\": {\"type\": \"null\"}");
  const auto grammar = JsonSchemaGrammar(Json::parse(schema + "}}"));
  Follower follower(*grammar);
  const State* state = follower.start();
  for (const char byte : std::string_view("{\"17\":null,\"399\": null}")) {
    ASSERT_NE(state, nullptr);
    state = follower.Next(state, static_cast<unsigned char>(byte));
  }
  EXPECT_TRUE(state != nullptr && Follower::MayEnd(state));
}

TEST(Follower, ForgettingChangesNothing) {
  const auto grammar = JsonSchemaGrammar(Json::parse(R"({"type": "array", "items": {"anyOf": [
      {"type": "string", "maxLength": 9}, {"type": "array", "items": {"type": "number"}}, {"$ref": "#"}]}})"));
  Follower remembers(*grammar), forgets(*grammar);
  const State *a = remembers.start(), *b = forgets.start();
  uint64_t random = 3;
  int64_t most = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<unsigned char> allowed;
    const State *next_a = nullptr, *next_b = nullptr;
    for (int byte = 0; byte < 256; ++byte) {
      next_a = remembers.Next(a, static_cast<unsigned char>(byte));
      next_b = forgets.Next(b, static_cast<unsigned char>(byte));
      ASSERT_EQ(next_a == nullptr, next_b == nullptr) << i << " " << byte;
      if (next_a != nullptr && !Follower::MustEnd(next_a))
        allowed.push_back(static_cast<unsigned char>(byte));
    }
    if (allowed.empty()) break;
    random = random * 6364136223846793005u + 1442695040888963407u;
    const unsigned char byte = allowed[(random >> 33) % allowed.size()];
    a = remembers.Next(a, byte);
    b = forgets.ForgetBut(forgets.Next(b, byte));
    remembers.Refill(Follower::kMostSteps);
    forgets.Refill(Follower::kMostSteps);
    most = std::max(most, forgets.bytes());
  }
  EXPECT_LT(most, 64 << 10);
}

// Random allowed tokens make valid JSON.
TEST(TokenConstraint, OnlyValidTextsCanBeMade) {
  const BytesTokenizer tokenizer;
  const TokenTable table(tokenizer);
  const auto grammar =
      JsonSchemaGrammar(Json::parse(R"({"type": "object", "required": ["a", "b"], "properties": {
      "a": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}, "b": {"type": "string", "maxLength": 5}}})"));
  uint64_t random = 7;
  for (int text = 0; text < 50; ++text) {
    TokenConstraint constraint(grammar, table);
    std::string made;
    for (int i = 0; i < 1000 && !constraint.Complete(); ++i) {
      const std::vector<bool>& allowed = constraint.Allowed();
      int32_t id = 0;
      do {
        random = random * 6364136223846793005u + 1442695040888963407u;
        id = static_cast<int32_t>((random >> 33) % allowed.size());
      } while (!allowed[static_cast<size_t>(id)]);
      ASSERT_NE(id, tokenizer.special().eot) << made;
      constraint.Accept(id);
      made += static_cast<char>(id);
    }
    ASSERT_TRUE(constraint.Complete()) << made;
    const Json value = Json::parse(made, nullptr, false);
    ASSERT_FALSE(value.is_discarded()) << made;
    EXPECT_TRUE(value["a"].is_array() && value["b"].is_string()) << made;
  }
  TokenConstraint constraint(grammar, table);
  EXPECT_THROW(constraint.Accept('x'), Error);
}

}  // namespace
}  // namespace lattice::text::grammar
