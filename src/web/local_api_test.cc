// The page's model answers as a server with the same model does.
#include "web/local_api.h"

#include <gtest/gtest.h>

#include "server/testing.h"

namespace lattice::web {
namespace {

using nlohmann::json;

json Ok(const Answer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  return json::parse(answer.body);
}

// All chunks of a stream; at most `steps` steps.
json Chunks(LocalApi& api, std::string_view path, const json& request, int steps = 100000) {
  const int64_t stream = Ok(api.Open(path, request.dump()))["stream"];
  json chunks = json::array();
  for (bool done = false; !done && steps > 0; --steps) {
    const json next = Ok(api.Next(stream));
    for (const json& chunk : next["chunks"]) chunks.push_back(chunk);
    done = next["done"];
  }
  api.Close(stream);
  return chunks;
}

// The chunks in the server's events.
json ServerChunks(const server::RunningServer& running, const std::string& path, json request) {
  request["stream"] = true;
  const std::string text = running.Post(path, request).text;
  json chunks = json::array();
  for (size_t at = text.find("data: {"); at != std::string::npos; at = text.find("data: {", at + 1))
    chunks.push_back(json::parse(text.substr(at + 6, text.find('\n', at) - at - 6)));
  return chunks;
}

// What the chunks say, however they were cut: text, finish_reason, and tokens with their traces.
json Told(const json& chunks) {
  json told = {{"text", ""}, {"tokens", json::array()}, {"reason", nullptr}};
  for (const json& chunk : chunks) {
    if (chunk["choices"].empty()) continue;
    const json& choice = chunk["choices"][0];
    told["text"] = told["text"].get<std::string>() +
                   choice.value("text", choice.value("delta", json::object()).value("content", ""));
    for (const json& token : choice.value("tokens", json::array())) told["tokens"].push_back(token);
    if (!choice["finish_reason"].is_null()) told["reason"] = choice["finish_reason"];
  }
  return told;
}

std::string NewSession(LocalApi& api) { return Ok(api.Call("POST", "/v1/sessions", ""))["id"]; }

TEST(LocalApi, WritesAndTracesWhatTheServerDoes) {
  const server::RunningServer running;
  LocalApi api(server::TinyServed());
  const json request = {{"prompt", "Once upon a time, behind a long prompt of more than one step"},
                        {"max_tokens", 40},
                        {"seed", 5},
                        {"trace", true}};
  const json here = Told(Chunks(api, "/v1/completions", request));
  EXPECT_EQ(here["tokens"].size(), 60u + 40u);
  EXPECT_EQ(here, Told(ServerChunks(running, "/v1/completions", request)));
}

TEST(LocalApi, ChatsAsTheServerDoes) {
  const server::RunningServer running;
  LocalApi api(server::TinyServed());
  const json request = {
      {"messages", {{{"role", "user"}, {"content", "What do you hold?"}}}}, {"max_tokens", 30}, {"seed", 3}};
  const json here = Told(Chunks(api, "/v1/chat/completions", request));
  EXPECT_FALSE(here["text"].get<std::string>().empty());
  EXPECT_EQ(here, Told(ServerChunks(running, "/v1/chat/completions", request)));
}

TEST(LocalApi, SessionsForkRewindAndShowTheirMemory) {
  const server::RunningServer running;
  LocalApi api(server::TinyServed());
  const std::string id = NewSession(api), theirs = running.NewSession(json::object());
  const std::string path = "/v1/sessions/" + id, their_path = "/v1/sessions/" + theirs;
  const json text = {{"text", "The memory holds"}};
  EXPECT_EQ(Ok(api.Call("POST", path + "/append", text.dump()))["tokens"],
            running.Post(their_path + "/append", text).body["tokens"]);
  const json fork = Ok(api.Call("POST", path + "/fork", "{}"));
  EXPECT_EQ(fork["position"], 16);
  Ok(api.Call("POST", path + "/append", json{{"text", " more"}}.dump()));
  EXPECT_EQ(Ok(api.Call("GET", path, ""))["position"], 21);
  EXPECT_EQ(Ok(api.Call("GET", "/v1/sessions/" + fork["id"].get<std::string>(), ""))["position"], 16);
  EXPECT_EQ(Ok(api.Call("POST", path + "/rewind", R"({"position": 16})"))["position"], 16);
  for (const char* query : {"/memory", "/memory?layer=1&head=0"})
    EXPECT_EQ(Ok(api.Call("GET", path + query, "")), running.Get(their_path + query).body);
  EXPECT_EQ(Ok(api.Call("DELETE", path, ""))["deleted"], true);
  EXPECT_EQ(api.Call("GET", path, "").status, 404);
}

TEST(LocalApi, AStreamThatIsClosedLeavesItsSessionWhereItIs) {
  LocalApi api(server::TinyServed());
  const std::string id = NewSession(api);
  const json request = {
      {"session", id}, {"prompt", "abc"}, {"max_tokens", 100}, {"seed", 1}, {"trace", true}};
  const size_t seen = Told(Chunks(api, "/v1/completions", request, 20))["tokens"].size();
  EXPECT_GT(seen, 10u);
  const int64_t position = Ok(api.Call("GET", "/v1/sessions/" + id, ""))["position"];
  EXPECT_GE(position, static_cast<int64_t>(seen));
  const json rewind = {{"position", seen}};
  EXPECT_EQ(Ok(api.Call("POST", "/v1/sessions/" + id + "/rewind", rewind.dump()))["position"], seen);
  const json more = {{"session", id}, {"max_tokens", 100 + 3 - seen}, {"seed", 1}, {"trace", true}};
  EXPECT_EQ(Told(Chunks(api, "/v1/completions", more))["tokens"].size(), 103 - seen);
}

TEST(LocalApi, StreamsTakeTurnsAndChangeNothingAboutEachOther) {
  LocalApi api(server::TinyServed());
  const auto request = [](int seed) { return json{{"prompt", "ab"}, {"max_tokens", 30}, {"seed", seed}}; };
  const json alone[] = {Told(Chunks(api, "/v1/completions", request(1))),
                        Told(Chunks(api, "/v1/completions", request(2)))};
  const int64_t streams[] = {Ok(api.Open("/v1/completions", request(1).dump()))["stream"],
                             Ok(api.Open("/v1/completions", request(2).dump()))["stream"]};
  json chunks[] = {json::array(), json::array()};
  bool done[] = {false, false};
  while (!done[0] || !done[1]) {
    for (int i = 0; i < 2; ++i) {
      if (done[i]) continue;
      const json next = Ok(api.Next(streams[i]));
      for (const json& chunk : next["chunks"]) chunks[i].push_back(chunk);
      done[i] = next["done"];
    }
  }
  EXPECT_EQ(Told(chunks[0]), alone[0]);
  EXPECT_EQ(Told(chunks[1]), alone[1]);
}

TEST(LocalApi, RefusesWithASentence) {
  LocalApi api(server::TinyServed());
  const std::string id = NewSession(api);
  const int64_t stream =
      Ok(api.Open("/v1/completions", json{{"session", id}, {"prompt", "a"}}.dump()))["stream"];
  EXPECT_EQ(api.Call("GET", "/v1/sessions/" + id, "").status, 409) << "the stream has it";
  api.Close(stream);
  EXPECT_EQ(api.Call("GET", "/v1/sessions/" + id, "").status, 200);
  EXPECT_EQ(api.Next(stream).status, 404);
  EXPECT_EQ(api.Call("GET", "/v1/nothing", "").status, 404);
  EXPECT_EQ(api.Call("GET", "no path", "").status, 400);
  EXPECT_EQ(api.Open("/v1/completions", "{").status, 400);
  EXPECT_EQ(api.Open("/v1/completions", R"({"prompt": "a", "n": 2})").status, 400);
  EXPECT_EQ(api.Call("POST", "/v1/sessions/" + id + "/rewind", R"({"position": 9})").status, 400);
  const Answer unknown = api.Call("GET", "/v1/sessions/unknown", "");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(json::parse(unknown.body)["error"]["message"], "");
}

}  // namespace
}  // namespace lattice::web
