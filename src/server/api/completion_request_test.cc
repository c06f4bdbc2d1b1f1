#include "server/api/completion_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/testing.h"
#include "server/engine/api_error.h"

namespace lattice::server {
namespace {

using nlohmann::json;

RequestLimits Limits() {
  RequestLimits limits;
  limits.vocabulary = 257;
  limits.prompt_tokens = 100;
  limits.max_tokens = 1000;
  return limits;
}

// The field that is refused, or "accepted".
std::string Refused(const std::string& body, bool chat = false) {
  try {
    chat ? ParseChat(body, Limits()) : ParseCompletion(body, Limits());
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_TRUE(json::parse(error.Body())["error"]["message"].is_string());
    return error.param();
  }
  return "accepted";
}

std::string RefusedField(const std::string& field, const json& value, bool chat = false) {
  json body = chat ? json{{"messages", {{{"role", "user"}, {"content", "hi"}}}}} : json{{"prompt", "hi"}};
  body[field] = value;
  return Refused(body.dump(), chat);
}

TEST(CompletionRequest, HasOpenAisDefaults) {
  const CompletionRequest request = ParseCompletion(R"({"prompt": "hi"})", Limits());
  EXPECT_EQ(std::get<std::string>(request.prompts.at(0)), "hi");
  EXPECT_EQ(request.max_tokens, 16);
  EXPECT_EQ(request.n, 1);
  EXPECT_EQ(request.sampler.temperature, 1);
  EXPECT_EQ(request.sampler.top_p, 1);
  EXPECT_EQ(request.logprobs, -1);
  EXPECT_FALSE(request.stream || request.echo || request.has_seed || request.trace);
}

TEST(CompletionRequest, TakesEveryKindOfPrompt) {
  const auto prompts = [](const std::string& text) {
    return ParseCompletion(R"({"prompt": )" + text + "}", Limits()).prompts;
  };
  EXPECT_EQ(prompts(R"(["a", "b"])").size(), 2u);
  EXPECT_EQ(std::get<std::vector<int32_t>>(prompts("[1, 2]").at(0)), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(std::get<std::vector<int32_t>>(prompts("[[1], [2, 256]]").at(1)), (std::vector<int32_t>{2, 256}));
}

TEST(CompletionRequest, RefusesEveryWrongPrompt) {
  for (const char* prompt :
       {"3", "true", "{}", "[]", "[true]", "[{}]", R"(["a", [1]])", R"([[1], "a"])", "[1, \"a\"]", "[257]",
        "[-1]", "[1.5]", "[[257]]", "[99999999999999999999]", "[null]", "[[[1]]]"})
    EXPECT_EQ(Refused(R"({"prompt": )" + std::string(prompt) + "}"), "prompt") << prompt;
  EXPECT_EQ(Refused("{}"), "prompt");
  EXPECT_EQ(Refused(json{{"prompt", std::vector<int>(101, 1)}}.dump()), "prompt");
  EXPECT_EQ(Refused(json{{"prompt", std::vector<std::string>(129, "a")}}.dump()), "prompt");
  EXPECT_EQ(Refused(json{{"prompt", std::vector<std::string>(65, "a")}, {"n", 2}}.dump()), "prompt");
}

TEST(CompletionRequest, RefusesWrongTypesAndValuesOfEveryField) {
  const std::vector<json> no_number = {"x", true, json::array(), json::object()};
  for (const bool chat : {false, true}) {
    for (const char* field : {"temperature", "top_p", "min_p", "repetition_penalty"}) {
      for (const json& value : no_number) EXPECT_EQ(RefusedField(field, value, chat), field) << value;
      EXPECT_EQ(RefusedField(field, -1, chat), field);
      EXPECT_EQ(RefusedField(field, 1e300, chat), field);
      EXPECT_EQ(RefusedField(field, nullptr, chat), "accepted");
    }
    for (const char* field : {"n", "max_tokens", "top_k", "seed"}) {
      for (const json& value : no_number) EXPECT_EQ(RefusedField(field, value, chat), field) << value;
      EXPECT_EQ(RefusedField(field, 1.5, chat), field);
      EXPECT_EQ(RefusedField(field, 18446744073709551615u, chat), field);
      EXPECT_EQ(RefusedField(field, nullptr, chat), "accepted");
    }
    for (const char* field : {"stream"}) {
      for (const json& value : {json("x"), json(1), json::array(), json::object()})
        EXPECT_EQ(RefusedField(field, value, chat), field) << value;
    }
    EXPECT_EQ(RefusedField("n", 0, chat), "n");
    EXPECT_EQ(RefusedField("n", 129, chat), "n");
    EXPECT_EQ(RefusedField("max_tokens", -1, chat), "max_tokens");
    EXPECT_EQ(RefusedField("max_tokens", 1001, chat), "max_tokens");
    EXPECT_EQ(RefusedField("model", 3, chat), "model");
    EXPECT_EQ(RefusedField("stop", 3, chat), "stop");
    EXPECT_EQ(RefusedField("stop", "", chat), "stop");
    EXPECT_EQ(RefusedField("stop", {"a", 3}, chat), "stop");
    EXPECT_EQ(RefusedField("stop", std::vector<std::string>(17, "a"), chat), "stop");
    EXPECT_EQ(RefusedField("stop", std::string(257, 'a'), chat), "stop");
    EXPECT_EQ(RefusedField("stream_options", json{{"include_usage", true}}, chat), "stream_options");
    EXPECT_EQ(RefusedField("logit_bias", json{{"3", 1}}, chat), "accepted");
    EXPECT_EQ(RefusedField("logit_bias", json{{"3", 101}}, chat), "logit_bias");
    EXPECT_EQ(RefusedField("logit_bias", json{{"x", 1}}, chat), "logit_bias");
    EXPECT_EQ(RefusedField("logit_bias", json{{"999999", 1}}, chat), "logit_bias");
    EXPECT_EQ(RefusedField("presence_penalty", 0.5, chat), "accepted");
    EXPECT_EQ(RefusedField("presence_penalty", 2.5, chat), "presence_penalty");
    EXPECT_EQ(RefusedField("frequency_penalty", -3, chat), "frequency_penalty");
    EXPECT_EQ(RefusedField("user", "me", chat), "accepted");
    EXPECT_EQ(RefusedField("user", 3, chat), "user");
    EXPECT_EQ(RefusedField("store", true, chat), "accepted");
    EXPECT_EQ(RefusedField("store", "yes", chat), "store");
    EXPECT_EQ(RefusedField("metadata", json{{"run", "1"}}, chat), "accepted");
    EXPECT_EQ(RefusedField("metadata", json{{"run", 1}}, chat), "metadata");
    EXPECT_EQ(RefusedField("response_format", json{{"type", "json_object"}}, chat), "accepted");
    EXPECT_EQ(RefusedField("response_format", json{{"type", "xml"}}, chat), "response_format");
    EXPECT_EQ(RefusedField("response_format", json{{"type", "json_schema"}}, chat), "response_format");
    EXPECT_EQ(RefusedField("temprature", 1, chat), "temprature");
    for (const char* field :
         {"service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"})
      for (const json& value : {json("x"), json(true), json{{"run", "1"}}})
        EXPECT_EQ(RefusedField(field, value, chat), "accepted") << field;
  }
  EXPECT_EQ(RefusedField("logprobs", -1), "logprobs");
  EXPECT_EQ(RefusedField("logprobs", 21), "logprobs");
  EXPECT_EQ(RefusedField("logprobs", true), "logprobs");
  EXPECT_EQ(RefusedField("logprobs", 3, true), "logprobs");
  EXPECT_EQ(RefusedField("top_logprobs", 3, true), "top_logprobs");
  EXPECT_EQ(RefusedField("echo", 1), "echo");
  EXPECT_EQ(RefusedField("trace", "yes"), "trace");
  EXPECT_EQ(RefusedField("session", 1), "session");
  EXPECT_EQ(RefusedField("best_of", 2), "best_of");
  EXPECT_EQ(RefusedField("suffix", "x"), "suffix");
  EXPECT_EQ(RefusedField("modalities", {"text"}, true), "accepted");
  EXPECT_EQ(RefusedField("modalities", {"text", "audio"}, true), "modalities");
  EXPECT_EQ(RefusedField("parallel_tool_calls", false, true), "accepted");
  EXPECT_EQ(Refused(R"({"session": "s", "n": 2})"), "session");
  EXPECT_EQ(Refused(R"({"session": "s"})"), "accepted");
}

TEST(CompletionRequest, RefusesWhatIsNoJsonObject) {
  for (const char* body :
       {"{", "[]", "3", "\"x\"", "null", "{\"prompt\": \"a\"} x", "{\"prompt\": NaN}", "{'prompt': 1}",
        "{\"prompt\": \"\xff\"}", "{\"prompt\": \"a\", \"prompt\": \"b\"}", "\xef\xbb\xbf[]"})
    EXPECT_EQ(Refused(body), "") << body;
  EXPECT_EQ(Refused(std::string(100000, '[')), "");
}

TEST(CompletionRequest, ChatBecomesOnePrompt) {
  const CompletionRequest request = ParseChat(
      R"({"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"},
          {"role": "assistant", "content": "Hello."}, {"role": "user", "content": [{"type": "text", "text": "Bye"}]}],
          "logprobs": true, "top_logprobs": 2, "max_completion_tokens": 7})",
      Limits());
  EXPECT_EQ(std::get<std::string>(request.prompts.at(0)),
            "Be kind.\n\nUser: Hi\nAssistant: Hello.\nUser: Bye\nAssistant:");
  EXPECT_EQ(request.stops, (std::vector<std::string>{"\nUser:"}));
  EXPECT_EQ(request.logprobs, 2);
  EXPECT_EQ(request.max_tokens, 7);
}

TEST(CompletionRequest, RefusesWrongMessages) {
  for (const char* messages :
       {"3", "[]", "[3]", "[{}]", R"([{"role": "tool", "content": "x"}])", R"([{"role": 3, "content": "x"}])",
        R"([{"role": "user", "content": 3}])", R"([{"role": "user", "content": [{"type": "image_url"}]}])",
        R"([{"role": "user", "content": [{"type": "text", "text": 3}]}])"})
    EXPECT_EQ(Refused(R"({"messages": )" + std::string(messages) + "}", true), "messages") << messages;
}

}  // namespace
}  // namespace lattice::server
