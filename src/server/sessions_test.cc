#include <gtest/gtest.h>

#include <optional>

#include "kernels/registry.h"
#include "server/testing.h"

namespace lattice::server {
namespace {

using nlohmann::json;

std::string TextOf(const Answer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.text;
  return answer.body["choices"][0]["text"];
}

TEST(Sessions, GoOnWhereTheyWere) {
  const RunningServer running;
  const std::string expected = TextOf(running.Post(
      "/v1/completions", {{"prompt", "Once upon a time"}, {"max_tokens", 12}, {"temperature", 0}}));
  const std::string id = running.NewSession({{"prompt", "Once upon"}});
  const Answer appended = running.Post("/v1/sessions/" + id + "/append", json{{"text", " a time"}});
  EXPECT_EQ(appended.body["position"], 16);
  EXPECT_EQ(appended.body["tokens"].size(), 7u);
  const json request = {{"session", id}, {"max_tokens", 6}, {"temperature", 0}};
  const Answer first = running.Post("/v1/completions", request),
               second = running.Post("/v1/completions", request);
  EXPECT_EQ(TextOf(first) + TextOf(second), expected);
  EXPECT_EQ(second.body["session"]["position"], 28);
  EXPECT_EQ(running.Get("/v1/sessions/" + id).body["position"], 28);
}

TEST(Sessions, AreFreeWhenTheirStreamEnds) {
  const RunningServer running;
  const std::string id = running.NewSession({{"prompt", "abc"}});
  for (int i = 0; i < 50; ++i) {
    const Answer streamed =
        running.Post("/v1/completions", {{"session", id}, {"max_tokens", 1}, {"stream", true}});
    EXPECT_EQ(streamed.status, 200) << streamed.text;
    EXPECT_EQ(running.Get("/v1/sessions/" + id).status, 200);
  }
}

TEST(Sessions, ForksNeverMix) {
  const RunningServer running;
  const std::string a = running.NewSession({{"prompt", "The memory"}});
  const Answer forked = running.Post("/v1/sessions/" + a + "/fork", json::object());
  ASSERT_EQ(forked.status, 201);
  const std::string b = forked.body["id"];
  EXPECT_NE(a, b);
  running.Post("/v1/sessions/" + a + "/append", json{{"text", " of elephants"}});
  running.Post("/v1/sessions/" + b + "/append", json{{"text", " is short"}});
  for (const auto& [id, prompt] : {std::pair{a, "The memory of elephants"}, {b, "The memory is short"}}) {
    EXPECT_EQ(
        TextOf(running.Post("/v1/completions", {{"session", id}, {"max_tokens", 8}, {"temperature", 0}})),
        TextOf(running.Post("/v1/completions", {{"prompt", prompt}, {"max_tokens", 8}, {"temperature", 0}})));
  }
}

TEST(Sessions, RewindToAnyPosition) {
  const RunningServer running;
  std::string prompt;
  for (int i = 0; i < 100; ++i) prompt += "word" + std::to_string(i) + " ";
  const std::string id = running.NewSession({{"prompt", prompt}});
  for (const int position : {600, 513, 512, 300, 1}) {
    const Answer answer = running.Post("/v1/sessions/" + id + "/rewind", json{{"position", position}});
    ASSERT_EQ(answer.status, 200) << answer.text;
    EXPECT_EQ(answer.body["position"], position);
    const std::string other = running.Post("/v1/sessions/" + id + "/fork", json::object()).body["id"];
    EXPECT_EQ(
        TextOf(running.Post("/v1/completions", {{"session", other}, {"max_tokens", 5}, {"temperature", 0}})),
        TextOf(running.Post("/v1/completions", {{"prompt", prompt.substr(0, static_cast<size_t>(position))},
                                                {"max_tokens", 5},
                                                {"temperature", 0}})));
  }
  const Answer wrong = running.Post("/v1/sessions/" + id + "/rewind", json{{"position", 2}});
  EXPECT_EQ(wrong.status, 400);
  EXPECT_NE(wrong.text.find("0 up to 1"), std::string::npos) << wrong.text;
  EXPECT_EQ(running.Post("/v1/sessions/" + id + "/rewind", json{{"position", 0}}).body["position"], 0);
}

// The start of three consecutive printable characters, each a token; the untrained model generates any bytes.
std::optional<size_t> VisibleRun(const std::vector<int>& ids) {
  const auto visible = [](int id) { return id > ' ' && id < 127; };
  for (size_t i = 2; i + 3 < ids.size(); ++i) {
    if (visible(ids[i]) && visible(ids[i + 1]) && visible(ids[i + 2])) return i;
  }
  return std::nullopt;
}

// A session is rewound over a stop text: it continues as if only the answer before it had been appended.
TEST(Sessions, AStopTextIsTakenBack) {
  const RunningServer running;
  int checked = 0;
  for (int seed = 0; seed < 100 && checked < 6; ++seed) {
    const json request = {{"prompt", "abc"}, {"max_tokens", 40}, {"seed", seed}};
    json traced = request;
    traced["trace"] = true;
    const Answer all = running.Post("/v1/completions", traced);
    std::vector<int> ids;
    for (const json& token : all.body["choices"][0]["tokens"]) ids.push_back(token["id"]);
    const std::optional<size_t> begin = VisibleRun(ids);
    if (!begin) continue;
    const std::vector<int> kept(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(*begin));
    const std::string stop = {static_cast<char>(ids[*begin]), static_cast<char>(ids[*begin + 1]),
                              static_cast<char>(ids[*begin + 2])};
    const std::string id = running.NewSession({{"prompt", "abc"}}),
                      same = running.NewSession({{"prompt", "abc"}});
    json stopped = request;
    stopped.erase("prompt");
    stopped["session"] = id;
    stopped["stop"] = stop;
    const Answer answer = running.Post("/v1/completions", stopped);
    EXPECT_EQ(answer.body["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(answer.body["session"]["position"], 3 + kept.size());
    running.Post("/v1/sessions/" + same + "/append", json{{"tokens", kept}});
    EXPECT_EQ(running.Get("/v1/sessions/" + id + "/state").text,
              running.Get("/v1/sessions/" + same + "/state").text);
    const json more = {{"max_tokens", 5}, {"temperature", 0}};
    json one = more, two = more;
    one["session"] = id, two["session"] = same;
    EXPECT_EQ(TextOf(running.Post("/v1/completions", one)), TextOf(running.Post("/v1/completions", two)));
    ++checked;
  }
  EXPECT_EQ(checked, 6);
}

TEST(Sessions, StatesTravelAndHostileOnesAreRefused) {
  const RunningServer running;
  const std::string id = running.NewSession({{"prompt", "state of the art"}});
  const std::string state = running.Get("/v1/sessions/" + id + "/state").text;
  const std::string other = running.NewSession(json::object());
  const Answer loaded = running.Put("/v1/sessions/" + other + "/state", state);
  ASSERT_EQ(loaded.status, 200) << loaded.text;
  EXPECT_EQ(loaded.body["position"], 16);
  const json more = {{"prompt", " of"}, {"max_tokens", 6}, {"temperature", 0}};
  json one = more, two = more;
  one["session"] = id, two["session"] = other;
  EXPECT_EQ(TextOf(running.Post("/v1/completions", one)), TextOf(running.Post("/v1/completions", two)));
  // The tokens before an uploaded state are not known.
  const Answer rewound = running.Post("/v1/sessions/" + other + "/rewind", json{{"position", 3}});
  EXPECT_EQ(rewound.status, 400);
  EXPECT_NE(rewound.text.find("16 up to"), std::string::npos);
  EXPECT_EQ(running.Post("/v1/sessions/" + other + "/rewind", json{{"position", 16}}).status, 200);
  EXPECT_EQ(running.Post("/v1/completions", {{"session", other}}).status, 400);

  std::string damaged = state;
  damaged[state.size() / 2] ^= 1;
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string(100, '\0'), state.substr(0, 200), damaged}) {
    const Answer answer = running.Put("/v1/sessions/" + id + "/state", bytes);
    EXPECT_EQ(answer.status, 400);
    EXPECT_TRUE(answer.body.contains("error"));
  }
  EXPECT_EQ(running.Get("/v1/sessions/" + id).body["position"], 25);
}

// A state as an attacker who knows the model could forge it: changed values, a claim to have read nothing,
// and a valid checksum.
std::string ForgedState() {
  const ServedModel served = TinyServed();
  runtime::Session session(served.model);
  for (float& value : session.state().fixed) value = 0.5f;
  session.state().position = 0;
  return session.Serialize();
}

TEST(Sessions, AForgedStateReachesNobodyElse) {
  for (const bool trusted : {false, true}) {
    ServerOptions options;
    options.seal.trust_others = trusted;
    const RunningServer running(options), untouched;
    const std::string prompt(600, 'p');
    const std::string id = running.NewSession(json::object());
    const Answer loaded = running.Put("/v1/sessions/" + id + "/state", ForgedState());
    ASSERT_EQ(loaded.status, trusted ? 200 : 400) << loaded.text;
    if (!trusted) {
      EXPECT_NE(loaded.text.find("seal"), std::string::npos) << loaded.text;
      continue;
    }
    // The forged state must not reach the prefix cache: not from the session, a fork of it, or a rewind.
    const std::string fork = running.Post("/v1/sessions/" + id + "/fork", json::object()).body["id"];
    for (const std::string& each : {id, fork}) {
      EXPECT_EQ(
          running.Post("/v1/sessions/" + each + "/append", json{{"text", prompt}, {"trace", true}}).status,
          200);
      EXPECT_EQ(running.Post("/v1/sessions/" + each + "/rewind", json{{"position", 0}}).status, 200);
      EXPECT_EQ(running.Post("/v1/sessions/" + each + "/append", json{{"text", prompt}}).status, 200);
    }
    const json ask = {{"prompt", prompt + "q"}, {"max_tokens", 12}, {"temperature", 0}};
    const Answer answer = running.Post("/v1/completions", ask);
    EXPECT_EQ(answer.body["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    EXPECT_EQ(TextOf(answer), TextOf(untouched.Post("/v1/completions", ask)));
    // The session continues from the uploaded state, not from what others have computed.
    EXPECT_NE(running.Get("/v1/sessions/" + id + "/state").text,
              running.Get("/v1/sessions/" + running.NewSession({{"prompt", prompt}}) + "/state").text);
  }
}

TEST(Sessions, StatesTravelBetweenServersThatShareAKey) {
  ServerOptions options;
  options.seal.key = "0123456789abcdef-shared";
  const RunningServer here(options), there(options), elsewhere;
  const std::string state = here.Get("/v1/sessions/" + here.NewSession({{"prompt", "abc"}}) + "/state").text;
  EXPECT_EQ(there.Put("/v1/sessions/" + there.NewSession(json::object()) + "/state", state).body["position"],
            3);
  EXPECT_EQ(elsewhere.Put("/v1/sessions/" + elsewhere.NewSession(json::object()) + "/state", state).status,
            400);
}

TEST(Sessions, TracesAndMemoryHaveTheirShapes) {
  const RunningServer running;
  const std::string id = running.NewSession(json::object());
  const Answer appended =
      running.Post("/v1/sessions/" + id + "/append", json{{"text", "abc"}, {"trace", true}});
  ASSERT_EQ(appended.body["tokens"].size(), 3u);
  const json& memory = appended.body["tokens"][2]["memory"];
  EXPECT_EQ(memory["write"].get<std::string>().size(), 64u);  // 2 x 2 x 12 bytes
  EXPECT_EQ(memory["novelty"].size(), 2u);
  EXPECT_EQ(memory["novelty"][1].size(), 2u);

  const Answer streamed = running.Post("/v1/completions", {{"session", id},
                                                           {"prompt", "de"},
                                                           {"max_tokens", 4},
                                                           {"temperature", 0},
                                                           {"trace", true},
                                                           {"stream", true}});
  int prompt = 0, made = 0;
  for (const json& chunk : StreamOf(streamed.text)) {
    for (const json& choice : chunk["choices"]) {
      for (const json& token : choice.value("tokens", json::array())) {
        EXPECT_TRUE(token.contains("memory"));
        ++(token.value("prompt", false) ? prompt : made);
      }
    }
  }
  EXPECT_EQ(prompt, 2);
  EXPECT_EQ(made, 4);

  const Answer all = running.Get("/v1/sessions/" + id + "/memory");
  ASSERT_EQ(all.body["layers"].size(), 2u);
  EXPECT_GT(all.body["layers"][0][1]["effective_rank"], 1);
  const Answer head = running.Get("/v1/sessions/" + id + "/memory?layer=1&head=0");
  EXPECT_EQ(head.body["norms"].size(), 12u);
  EXPECT_EQ(head.body["similarity"][3][3], 1);
  EXPECT_EQ(head.body["similarity"][3][4], head.body["similarity"][4][3]);
  for (const char* query :
       {"?layer=2&head=0", "?layer=0", "?layer=-1&head=0", "?layer=x&head=0", "?layer=99999999999&head=0"})
    EXPECT_EQ(running.Get("/v1/sessions/" + id + "/memory" + query).status, 400) << query;
}

TEST(Sessions, ATransformerHasThemWithoutAMemory) {
  for (const std::string& mixer : runtime::AllMixers()) {
    if (runtime::TinyConfig(mixer).HasMemory()) continue;
    const RunningServer running({}, mixer);
    const std::string id = running.NewSession({{"prompt", "abc"}});
    EXPECT_EQ(running.Get("/v1/sessions/" + id).body["slots"], 0);
    EXPECT_EQ(running.Get("/v1/sessions/" + id + "/memory").status, 400);
    const Answer appended =
        running.Post("/v1/sessions/" + id + "/append", json{{"text", "de"}, {"trace", true}});
    EXPECT_EQ(appended.body["tokens"].size(), 2u);
    EXPECT_FALSE(appended.body["tokens"][0].contains("memory"));
  }
}

TEST(Sessions, ShowTheMemoriesOfTheLayersThatHaveOne) {
  const RunningServer running({}, "lattice_dec,transformer");
  const std::string id = running.NewSession({{"prompt", "abc"}});
  EXPECT_EQ(running.Get("/v1/sessions/" + id).body["mixer"], "lattice_dec,transformer");
  const json layers = running.Get("/v1/sessions/" + id + "/memory").body["layers"];
  EXPECT_EQ(layers[0].size(), 2u);
  EXPECT_EQ(layers[1].size(), 0u);
  EXPECT_EQ(running.Get("/v1/sessions/" + id + "/memory?layer=0&head=1").status, 200);
  EXPECT_EQ(running.Get("/v1/sessions/" + id + "/memory?layer=1&head=1").body["error"]["code"], "no_memory");
}

TEST(Sessions, AreDeletedAndBounded) {
  ServerOptions options;
  options.sessions.count = 3;
  const RunningServer running(options);
  std::string id;
  for (int i = 0; i < 3; ++i) id = running.NewSession(json::object());
  const Answer full = running.Post("/v1/sessions", json::object());
  EXPECT_EQ(full.status, 429);
  EXPECT_TRUE(full.headers.contains("Retry-After"));
  EXPECT_EQ(running.Delete("/v1/sessions/" + id).body["deleted"], true);
  EXPECT_EQ(running.Delete("/v1/sessions/" + id).status, 404);
  EXPECT_EQ(running.Get("/v1/sessions/" + id).status, 404);
  EXPECT_EQ(running.Post("/v1/completions", {{"session", id}}).status, 404);
  running.NewSession(json::object());
}

}  // namespace
}  // namespace lattice::server
