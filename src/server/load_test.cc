#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "server/raw_client.h"
#include "server/testing.h"

namespace lattice::server {
namespace {

using nlohmann::json;

json Request(int i) {
  json request = {
      {"prompt", std::string(static_cast<size_t>(1 + i * 37 % 400), static_cast<char>('a' + i % 26))},
      {"max_tokens", 5 + i % 17},
      {"seed", i},
      {"temperature", i % 3 == 0 ? 0.0 : 1.0},
      {"n", 1 + i % 2}};
  if (i % 4 == 1) request["logprobs"] = 2;
  if (i % 4 == 1) request["echo"] = true;
  if (i % 5 == 2) request["trace"] = true;
  return request;
}

TEST(Load, AnswersAreTheSameAloneAndUnderLoad) {
  constexpr int kRequests = 40;
  std::vector<json> alone;
  {
    ServerOptions options;
    options.cache_bytes = 0;
    const RunningServer running(options);
    for (int i = 0; i < kRequests; ++i)
      alone.push_back(running.Post("/v1/completions", Request(i)).body["choices"]);
  }
  const RunningServer running;
  std::vector<json> loaded(kRequests);
  std::vector<std::thread> clients;
  for (int i = 0; i < kRequests; ++i) {
    clients.emplace_back([&, i] {
      loaded[static_cast<size_t>(i)] = running.Post("/v1/completions", Request(i)).body["choices"];
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < kRequests; ++i) {
    EXPECT_FALSE(alone[i].is_null());
    EXPECT_EQ(alone[i], loaded[i]) << i;
  }
}

const std::string kEndless = R"({"prompt": "a", "max_tokens": 60000, "stream": true, "temperature": 0})";

TEST(Load, TwoHundredHangUpsFreeTheirPlaces) {
  const RunningServer running;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 50; ++i) {
      clients.push_back(std::make_unique<RawClient>(running.port));
      ASSERT_TRUE(clients.back()->SendPost("/v1/completions", kEndless));
    }
    for (const auto& client : clients)
      EXPECT_NE(client->ReadUntil("data: ").find("data: "), std::string::npos);
    clients.clear();
    EXPECT_TRUE(Eventually([&] { return running.server.metrics().running == 0; }));
  }
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().connections == 0; }));
  EXPECT_EQ(running.server.metrics().waiting, 0);
  EXPECT_EQ(running.Post("/v1/completions", R"({"prompt": "a"})").status, 200);
}

TEST(Load, AHangUpWithoutAStreamIsNoticedToo) {
  const RunningServer running;
  RawClient client(running.port);
  client.SendPost("/v1/completions", R"({"prompt": "a", "max_tokens": 60000, "temperature": 0})");
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().running == 1; }));
  client.Close();
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().running == 0; }));
  EXPECT_EQ(running.server.metrics().disconnected, 1);
}

// A half-closed connection cannot be distinguished from one that is gone, so its request is ended; the client
// is told why.
TEST(Load, AHalfClosingClientIsToldAndNotGivenHalfAnAnswer) {
  const RunningServer running;
  RawClient whole(running.port), stream(running.port);
  whole.SendPost("/v1/completions", R"({"prompt": "a", "max_tokens": 60000, "temperature": 0})");
  whole.EndSending();
  const std::string told = whole.ReadAll();
  EXPECT_TRUE(told.starts_with("HTTP/1.1 400")) << told;
  EXPECT_NE(told.find("client_closed"), std::string::npos);
  stream.SendPost("/v1/completions", kEndless);
  stream.ReadUntil("data: ");
  stream.EndSending();
  EXPECT_NE(stream.ReadAll().find("client_closed"), std::string::npos);
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().running == 0; }));
  // Requests that need no computation are answered all the same.
  RawClient health(running.port);
  health.Send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  health.EndSending();
  EXPECT_TRUE(health.ReadAll().starts_with("HTTP/1.1 200"));
}

// Starts a long stream to the client, and returns when its first token has arrived.
void StreamInto(const std::string& session, RawClient& client) {
  client.SendPost(
      "/v1/completions",
      json{{"session", session}, {"max_tokens", 60000}, {"temperature", 0}, {"stream", true}}.dump());
  client.ReadUntil("data: ");
}

TEST(Load, ASessionGoesOnAfterAHangUp) {
  const RunningServer running;
  const std::string id = running.NewSession({{"prompt", "abc"}});
  RawClient client(running.port);
  StreamInto(id, client);
  client.Close();
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().running == 0; }));
  const auto ask = [&] { return running.Post("/v1/completions", {{"session", id}, {"max_tokens", 2}}); };
  EXPECT_TRUE(Eventually([&] { return ask().status != 409; }));
  const Answer answer = ask();
  EXPECT_EQ(answer.status, 200) << answer.text;
}

TEST(Load, AFullQueueRefusesAtOnce) {
  ServerOptions options;
  options.scheduler.running = 2;
  options.scheduler.waiting = 2;
  const RunningServer running(options);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<RawClient>(running.port));
    clients.back()->SendPost("/v1/completions", kEndless);
  }
  EXPECT_TRUE(
      Eventually([&] { return running.server.metrics().running + running.server.metrics().waiting == 4; }));
  const auto start = std::chrono::steady_clock::now();
  const Answer answer = running.Post("/v1/completions", R"({"prompt": "a"})");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.body["error"]["code"], "overloaded");
  EXPECT_EQ(answer.headers.find("Retry-After")->second, "1");
  clients.clear();
  EXPECT_TRUE(
      Eventually([&] { return running.server.metrics().running + running.server.metrics().waiting == 0; }));
  EXPECT_EQ(running.Post("/v1/completions", R"({"prompt": "a"})").status, 200);
}

TEST(Load, AClientThatDoesNotReadHoldsUpNobody) {
  ServerOptions options;
  options.http.connection.progress = std::chrono::seconds(1);
  const RunningServer running(options);
  RawClient slow(running.port, 4096);
  slow.SendPost(
      "/v1/completions",
      R"({"prompt": "a", "max_tokens": 60000, "stream": true, "trace": true, "logprobs": 20, "temperature": 0})");
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().running == 1; }));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(running.Post("/v1/completions", R"({"prompt": "b", "max_tokens": 50})").status, 200);
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().running == 0; }))
      << "it is given up in the end";
}

TEST(Load, ASessionInUseIsNotSharedAndMayBeDeleted) {
  const RunningServer running;
  const std::string id = running.NewSession({{"prompt", "abc"}});
  RawClient client(running.port);
  StreamInto(id, client);
  EXPECT_EQ(running.Post("/v1/sessions/" + id + "/append", json{{"text", "x"}}).status, 409);
  EXPECT_EQ(running.Delete("/v1/sessions/" + id).status, 200);
  EXPECT_EQ(running.Get("/v1/sessions/" + id).status, 404);
  client.Close();
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().running == 0; }));
}

TEST(Load, StoppingEndsStreamsWithinTheGraceTime) {
  auto running = std::make_unique<RunningServer>();
  RawClient client(running->port), idle(running->port), quick(running->port);
  client.SendPost("/v1/completions", kEndless);
  EXPECT_NE(client.ReadUntil("data: ").find("data: "), std::string::npos);
  std::string told;
  std::thread reading([&] { told = client.ReadAll(); });
  const auto start = std::chrono::steady_clock::now();
  running.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
  reading.join();
  EXPECT_NE(told.find("shutting_down"), std::string::npos);
  EXPECT_EQ(idle.ReadAll(), "");
}

TEST(Load, ManyThreadsUseSessionsAtOnce) {
  const RunningServer running;
  const std::string shared = running.NewSession({{"prompt", "shared"}});
  std::atomic<int> answered = 0, busy = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      const std::string own = running.NewSession({{"prompt", std::string(static_cast<size_t>(i + 1), 'x')}});
      for (int round = 0; round < 5; ++round) {
        EXPECT_EQ(running.Post("/v1/completions", {{"session", own}, {"max_tokens", 3}}).status, 200);
        const int status = running.Post("/v1/completions", {{"session", shared}, {"max_tokens", 3}}).status;
        ++(status == 200 ? answered : busy);
        EXPECT_TRUE(status == 200 || status == 409);
        EXPECT_EQ(running.Get("/metrics").status, 200);
        EXPECT_EQ(running.Get("/v1/sessions/" + own + "/memory").status, 200);
      }
      EXPECT_EQ(running.Delete("/v1/sessions/" + own).status, 200);
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GT(answered, 0);
}

}  // namespace
}  // namespace lattice::server
