#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "runtime/engine.h"
#include "server/testing.h"

namespace lattice::server {
namespace {

using nlohmann::json;

// Greedy decoding with the runtime alone, without server, batches or cache.
std::string Greedy(const ServedModel& served, const std::string& prompt, int64_t count) {
  runtime::Engine engine(served.model, 1);
  runtime::Session session(served.model);
  const std::vector<int32_t> tokens = served.tokenizer->Encode(prompt);
  std::span<const float> logits = engine.Append(session, tokens);
  std::vector<int32_t> chosen;
  while (static_cast<int64_t>(chosen.size()) < count) {
    const auto known = logits.first(257);
    chosen.push_back(static_cast<int32_t>(std::max_element(known.begin(), known.end()) - known.begin()));
    logits = engine.Append(session, {&chosen.back(), 1});
  }
  std::string text;
  text::StreamDecoder decoder(*served.tokenizer, false);
  for (const int32_t id : chosen) text += decoder.Push(id);
  return text + decoder.Finish();
}

TEST(Completions, GiveWhatTheRuntimeGives) {
  const RunningServer running;
  for (const char* prompt : {"a", "It was a dark and stormy night"}) {
    const Answer answer =
        running.Post("/v1/completions", {{"prompt", prompt}, {"max_tokens", 30}, {"temperature", 0}});
    ASSERT_EQ(answer.status, 200) << answer.text;
    const json& choice = answer.body["choices"][0];
    EXPECT_EQ(choice["text"], Greedy(TinyServed(), prompt, 30));
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(answer.body["usage"]["completion_tokens"], 30);
    EXPECT_EQ(answer.body["usage"]["prompt_tokens"], std::string(prompt).size());
    EXPECT_EQ(answer.body["model"], "tiny");
  }
}

TEST(Completions, StreamsWhatItAnswersWhole) {
  const RunningServer running;
  const json request = {
      {"prompt", {"one", "two"}}, {"n", 2}, {"max_tokens", 20}, {"seed", 3}, {"temperature", 1.5}};
  const Answer whole = running.Post("/v1/completions", request);
  json streamed = request;
  streamed["stream"] = true;
  streamed["stream_options"] = {{"include_usage", true}};
  const Answer pieces = running.Post("/v1/completions", streamed);
  ASSERT_EQ(whole.status, 200) << whole.text;
  EXPECT_EQ(pieces.headers.find("Content-Type")->second, "text/event-stream");
  std::vector<std::string> texts(4);
  json usage;
  for (const json& chunk : StreamOf(pieces.text)) {
    if (!chunk["usage"].is_null()) usage = chunk["usage"];
    for (const json& choice : chunk["choices"])
      texts.at(choice["index"]) += choice["text"].get<std::string>();
  }
  std::set<std::string> different;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(whole.body["choices"][i]["text"], texts[i]);
    different.insert(texts[i]);
  }
  EXPECT_EQ(different.size(), 4u) << "choices of one seed must differ";
  EXPECT_EQ(usage["completion_tokens"], 80);
  EXPECT_EQ(usage["prompt_tokens"], 6);
}

TEST(Completions, ASeedAndTheCacheGiveTheSameText) {
  const RunningServer running;
  const std::string prompt(700, 'x');
  const json request = {{"prompt", prompt}, {"max_tokens", 20}, {"seed", 5}, {"repetition_penalty", 1.2}};
  const Answer first = running.Post("/v1/completions", request),
               second = running.Post("/v1/completions", request);
  EXPECT_EQ(first.body["choices"], second.body["choices"]);
  EXPECT_EQ(first.body["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(second.body["usage"]["prompt_tokens_details"]["cached_tokens"], 699);
  const Answer longer =
      running.Post("/v1/completions", {{"prompt", prompt.substr(0, 600) + "y"}, {"max_tokens", 1}});
  EXPECT_EQ(longer.body["usage"]["prompt_tokens_details"]["cached_tokens"], 512);
}

TEST(Completions, StopsCutTheText) {
  const RunningServer running;
  const std::string all = Greedy(TinyServed(), "abc", 30);
  size_t begin = 4;  // must be at a character boundary
  while ((static_cast<unsigned char>(all[begin]) | static_cast<unsigned char>(all[begin + 1])) >= 0x80)
    ++begin;
  const std::string stop = all.substr(begin, 2);
  const size_t cut = all.find(stop);
  const Answer answer = running.Post(
      "/v1/completions",
      {{"prompt", "abc"}, {"max_tokens", 30}, {"temperature", 0}, {"stop", {stop, "never comes"}}});
  EXPECT_EQ(answer.body["choices"][0]["text"], all.substr(0, cut));
  EXPECT_EQ(answer.body["choices"][0]["finish_reason"], "stop");
}

TEST(Completions, ScoresAPromptAsLmEvalAsks) {
  const RunningServer running;
  const ServedModel served = TinyServed();
  const std::vector<int32_t> tokens = served.tokenizer->Encode("hello world");
  const Answer answer = running.Post(
      "/v1/completions", {{"prompt", tokens}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 1}});
  ASSERT_EQ(answer.status, 200) << answer.text;
  const json& choice = answer.body["choices"][0];
  EXPECT_EQ(choice["text"], "hello world");
  const json& logprobs = choice["logprobs"];
  ASSERT_EQ(logprobs["token_logprobs"].size(), tokens.size());
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null() && logprobs["top_logprobs"][0].is_null());
  EXPECT_EQ(logprobs["tokens"][4], "o");
  EXPECT_EQ(logprobs["text_offset"][10], 10);
  runtime::Engine engine(served.model, 1);
  runtime::Session session(served.model);
  for (size_t i = 1; i < tokens.size(); ++i) {
    const auto logits = engine.Append(session, {&tokens[i - 1], 1});
    EXPECT_NEAR(logprobs["token_logprobs"][i].get<double>(), runtime::LogProb(logits, tokens[i]), 1e-12);
    EXPECT_TRUE(logprobs["top_logprobs"][i].contains(logprobs["tokens"][i].get<std::string>()));
  }
  // With one generated token after it, as lm-evaluation-harness requests it.
  const Answer one = running.Post("/v1/completions",
                                  {{"prompt", tokens}, {"max_tokens", 1}, {"echo", true}, {"logprobs", 1}});
  EXPECT_EQ(one.body["choices"][0]["logprobs"]["token_logprobs"].size(), tokens.size() + 1);
}

TEST(Completions, ChatAnswersAndStreams) {
  const RunningServer running;
  json request = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"max_tokens", 8}, {"seed", 1}};
  const Answer whole = running.Post("/v1/chat/completions", request);
  ASSERT_EQ(whole.status, 200) << whole.text;
  EXPECT_EQ(whole.body["object"], "chat.completion");
  EXPECT_EQ(whole.body["choices"][0]["message"]["role"], "assistant");
  request["stream"] = true;
  std::string text;
  const std::vector<json> chunks = StreamOf(running.Post("/v1/chat/completions", request).text);
  EXPECT_EQ(chunks.front()["choices"][0]["delta"]["role"], "assistant");
  for (const json& chunk : chunks) text += chunk["choices"][0]["delta"].value("content", "");
  EXPECT_EQ(whole.body["choices"][0]["message"]["content"], text);
}

TEST(Completions, EveryMixerServes) {
  for (const std::string& mixer : runtime::AllMixers()) {
    const RunningServer running({}, mixer);
    const json request = {{"prompt", "abc"}, {"max_tokens", 4}, {"temperature", 0}, {"trace", true}};
    const Answer answer = running.Post("/v1/completions", request);
    ASSERT_EQ(answer.status, 200) << mixer << answer.text;
    EXPECT_EQ(answer.body["choices"][0]["text"], Greedy(TinyServed(mixer), "abc", 4)) << mixer;
  }
}

TEST(Completions, TokenizeRoundTrips) {
  const RunningServer running;
  const Answer tokens = running.Post("/tokenize", json{{"text", "h\xC3\xA9"}});
  EXPECT_EQ(tokens.body["tokens"], json({104, 195, 169}));
  EXPECT_EQ(tokens.body["count"], 3);
  EXPECT_EQ(running.Post("/detokenize", json{{"tokens", {104, 195, 169}}}).body["text"], "h\xC3\xA9");
}

TEST(Completions, ATokenizerWithoutSpecialIdsNamesNone) {
  const RunningServer running;
  const json info = running.Get("/tokenizer_info").body;
  for (const char* key : {"bos_token", "bos_token_id", "eos_token", "eos_token_id"})
    EXPECT_TRUE(info.contains(key) && info[key].is_null()) << key;
  EXPECT_EQ(running.Post("/tokenize", json{{"prompt", "<|endoftext|>"}}).body["count"], 13);
}

}  // namespace
}  // namespace lattice::server
