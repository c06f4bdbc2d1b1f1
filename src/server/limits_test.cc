// Limits on what greedy or hostile clients can take from others: connections, memory, time.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "kernels/registry.h"
#include "server/raw_client.h"
#include "server/testing.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // resident memory is the sanitizer's
#else
constexpr bool kSanitized = false;
#endif

namespace lattice::server {
namespace {

using nlohmann::json;
using Clients = std::vector<std::unique_ptr<RawClient>>;

const std::string kHealth = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const std::string kHalfHead = "GET /health HTTP/1.1\r\nHost: ";
const std::string kHalfBody =
    "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    "90\r\n\r\n{";

// A figure of /proc/self/status: "VmRSS" in bytes, "Threads".
int64_t Status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":"))
      return std::stoll(line.substr(name.size() + 1)) * (name == "VmRSS" ? 1024 : 1);
  }
  return 0;
}

std::string Stream(int n) {
  return json{{"prompt", "a"}, {"max_tokens", 60000}, {"stream", true}, {"temperature", 0}, {"n", n}}.dump();
}

bool Answers(RawClient& client) {
  client.Send(kHealth);
  return client.ReadUntil("ok").starts_with("HTTP/1.1 200");
}

TEST(Limits, ThreadsDoNotGrowWithConnections) {
  const RunningServer running;
  EXPECT_EQ(running.Get("/health").status, 200);
  const int64_t before = Status("Threads");
  Clients clients;
  for (int i = 0; i < 400; ++i) {
    clients.push_back(std::make_unique<RawClient>(running.port));
    if (i % 2 == 0) clients.back()->Send(kHalfHead);
  }
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().connections == 400; }));
  EXPECT_EQ(Status("Threads"), before);
  EXPECT_EQ(running.Get("/health").status, 200);
}

TEST(Limits, ARequestThatTakesTooLongIsEnded) {
  ServerOptions options;
  options.api.job = std::chrono::seconds(1);
  options.api.request.max_tokens = int64_t{1} << 20;
  const RunningServer running(options);
  const Answer late = running.Post("/v1/completions", json{{"prompt", "a"}, {"max_tokens", (1 << 20) - 1}});
  EXPECT_EQ(late.status, 503);
  EXPECT_EQ(late.body["error"]["code"], "timeout") << late.text;
  EXPECT_EQ(running.Post("/v1/completions", json{{"prompt", "a"}, {"max_tokens", 1}}).status, 200);
}

TEST(Limits, SilentAndHalfOpenConnectionsMakeRoom) {
  ServerOptions options;
  options.http.connections = 8;
  for (const std::string& said : {std::string(), kHalfHead, kHalfBody}) {
    const RunningServer running(options);
    Clients clients;
    for (int i = 0; i < 8; ++i) {
      clients.push_back(std::make_unique<RawClient>(running.port));
      clients.back()->Send(said);
    }
    EXPECT_TRUE(Eventually([&] { return running.server.metrics().connections == 8; }));
    for (int i = 0; i < 20; ++i) {
      RawClient client(running.port);
      EXPECT_TRUE(Answers(client)) << said;
    }
    EXPECT_GE(running.server.metrics().dropped_connections, 1);
  }
}

TEST(Limits, ConnectionsThatAreAnsweredAreNotDropped) {
  ServerOptions options;
  options.http.connections = 2;
  const RunningServer running(options);
  RawClient one(running.port), two(running.port);
  for (RawClient* client : {&one, &two}) {
    client->SendPost("/v1/completions", Stream(1));
    EXPECT_NE(client->ReadUntil("data: ").find("data: "), std::string::npos);
  }
  RawClient three(running.port);
  EXPECT_TRUE(three.ReadAll().starts_with("HTTP/1.1 503"));
  EXPECT_GE(running.server.metrics().refused_connections, 1);
  EXPECT_EQ(running.server.metrics().running, 2);
}

TEST(Limits, DescriptorsRunOutAndTheServerGoesOn) {
  const RunningServer running;
  Clients clients;
  int highest = 0;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<RawClient>());
    highest = std::max(highest, clients.back()->socket());
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(highest) + 1 + 4;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  // There are more clients than places: connections that have sent nothing are evicted first.
  for (size_t i = 0; i < 30; ++i) EXPECT_TRUE(clients[i]->Connect(running.port));
  for (size_t i = 30; i < clients.size(); ++i) {
    EXPECT_TRUE(clients[i]->Connect(running.port) && clients[i]->Send(kHealth));
    EXPECT_TRUE(clients[i]->ReadUntil("ok").starts_with("HTTP/1.1 200")) << i;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(running.Get("/health").status, 200);
}

TEST(Limits, AnswersNobodyReadsHoldLittleMemoryAndGiveItBack) {
  ServerOptions options;
  options.http.bytes = 32 << 20;
  options.http.connection.progress = options.http.connection.idle = std::chrono::seconds(1);
  const RunningServer running(options);
  EXPECT_EQ(running.Post("/tokenize", json{{"text", "warm"}}).status, 200);
  const int64_t before = Status("VmRSS");
  const std::string body = "{\"text\": \"" + std::string(2 << 20, 'a') + "\"}";
  Clients clients;
  int64_t most = 0;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<RawClient>(running.port, 4096));
    clients.back()->SendPost("/tokenize", body);
    most = std::max(most, Status("VmRSS") - before);
  }
  EXPECT_TRUE(Eventually([&] {
    most = std::max(most, Status("VmRSS") - before);
    return running.server.metrics().connections == 0;
  })) << "those that take nothing are given up";
  if (kSanitized) return;
  // 32 MiB in flight, and what three workers need to parse 2 MiB of text.
  EXPECT_LT(most, int64_t{192} << 20);
  EXPECT_TRUE(Eventually([&] { return Status("VmRSS") - before < (int64_t{24} << 20); }))
      << Status("VmRSS") - before;
}

TEST(Limits, RequestsWhoseClientsHaveGoneGiveTheirMemoryBack) {
  const RunningServer running;
  EXPECT_EQ(running.Post("/tokenize", json{{"text", "warm"}}).status, 200);
  const int64_t before = Status("VmRSS");
  // Each takes a worker longer than the server needs to notice that its client has gone.
  std::string body = "{\"text\": [{}";
  while (body.size() < (6 << 20)) body += ",{}";
  for (int i = 0; i < 6; ++i) RawClient(running.port).SendPost("/tokenize", body + "]}");
  const auto& metrics = running.server.metrics();
  EXPECT_TRUE(Eventually([&] { return metrics.connections == 0; }));
  if (kSanitized) return;
  EXPECT_TRUE(Eventually([&] { return Status("VmRSS") - before < (int64_t{24} << 20); }))
      << Status("VmRSS") - before;
}

TEST(Limits, BodiesOnTheirWayAreBoundedAndSmallOnesStillServed) {
  ServerOptions options;
  options.http.bytes = 4 << 20;
  const RunningServer running(options);
  const std::string head =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "8000000\r\n\r\n";
  Clients clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<RawClient>(running.port));
    clients.back()->Send(head + std::string(1 << 20, ' '));
  }
  int refused = 0;
  for (const auto& client : clients)
    refused += client->ReadUntil("overloaded", 1000).starts_with("HTTP/1.1 503");
  EXPECT_GE(refused, 4);
  EXPECT_LT(refused, 8);
  EXPECT_EQ(running.Post("/tokenize", json{{"text", std::string(50000, 'a')}}).status, 200);
}

TEST(Limits, TheGraceTimeIsKeptWhateverClientsDo) {
  ServerOptions options;
  options.grace = std::chrono::seconds(1);
  auto running = std::make_unique<RunningServer>(options);
  RawClient silent(running->port), head(running->port), body(running->port), unread(running->port, 4096),
      stream(running->port, 4096);
  head.Send(kHalfHead);
  body.Send(kHalfBody);
  unread.SendPost("/tokenize", "{\"text\": \"" + std::string(4 << 20, 'a') + "\"}");
  stream.SendPost("/v1/completions", Stream(4));
  EXPECT_TRUE(Eventually([&] { return running->server.metrics().running == 4; }));
  EXPECT_TRUE(Eventually([&] { return running->server.metrics().connections == 5; }));
  const auto start = std::chrono::steady_clock::now();
  running.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(kSanitized ? 20 : 6));
}

TEST(Limits, RequestsForManyTextsLeaveRoomForOthers) {
  ServerOptions options;
  options.scheduler.running = 8;
  options.scheduler.waiting = 8;
  const RunningServer running(options);
  Clients clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<RawClient>(running.port));
    clients.back()->SendPost("/v1/completions", Stream(3));
  }
  const Metrics& metrics = running.server.metrics();
  EXPECT_TRUE(Eventually([&] { return metrics.running + metrics.waiting == 12; }));
  EXPECT_EQ(running.Post("/v1/completions", {{"prompt", "a"}, {"n", 3}}).status, 429) << "n counts as n";
  EXPECT_TRUE(Eventually([&] { return metrics.running == 6; })) << "of the batch, too, a quarter is left";
  EXPECT_EQ(running.Post("/v1/completions", R"({"prompt": "a", "max_tokens": 3})").status, 200);
  EXPECT_EQ(running.Post("/v1/completions", {{"prompt", "a"}, {"n", 13}}).status, 400);
}

TEST(Limits, OneClientLeavesRoomForOthers) {
  ServerOptions options;
  options.http.client_connections = 3;
  options.scheduler.client = 2;
  const RunningServer running(options);
  RawClient one(running.port, 0, 2), two(running.port, 0, 2), three(running.port, 0, 2);
  for (RawClient* client : {&one, &two}) {
    client->SendPost("/v1/completions", Stream(1));
    EXPECT_NE(client->ReadUntil("data: ").find("data: "), std::string::npos);
  }
  three.SendPost("/v1/completions", Stream(1));
  EXPECT_TRUE(three.ReadUntil("}}").starts_with("HTTP/1.1 429"));
  // The third connection is idle and is evicted; when all three are busy, there is no room for a fourth.
  RawClient four(running.port, 0, 2);
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().dropped_connections == 1; }));
  EXPECT_TRUE(Answers(four));
  RawClient other(running.port, 0, 3);
  other.SendPost("/v1/completions", R"({"prompt": "a", "max_tokens": 3})");
  EXPECT_TRUE(other.ReadUntil("usage").starts_with("HTTP/1.1 200"));
}

TEST(Limits, EveryWayToGrowCountsForSessions) {
  ServerOptions options;
  const ServedModel served = TinyServed();
  const int64_t one = Conversation(served.model).Bytes();
  options.sessions.bytes = 6 * one + one / 2;
  const RunningServer running(options);
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(running.NewSession(json::object()));
  const std::string state = running.Get("/v1/sessions/" + ids[0] + "/state").text;
  int taken = 0, refused = 0;
  for (const std::string& id : ids) {
    const int status = running.Put("/v1/sessions/" + id + "/state", state).status;
    ++(status == 200 ? taken : refused);
    EXPECT_TRUE(status == 200 || status == 429) << status;
  }
  EXPECT_GE(taken, 1);
  EXPECT_GE(refused, 1) << "a loaded state is kept twice, to rewind to";
  const std::string metrics = running.Get("/metrics").text;
  const size_t at = metrics.find("\nlattice_session_bytes ");
  EXPECT_LE(std::stoll(metrics.substr(at + 23)), options.sessions.bytes);
  EXPECT_EQ(
      running.Post("/v1/completions", {{"session", ids[3]}, {"prompt", "a"}, {"max_tokens", 60000}}).status,
      429);
}

TEST(Limits, TheCachesOfATransformerAreCountedBeforeTheyAreMade) {
  for (const std::string& mixer : runtime::AllMixers()) {
    if (!runtime::TinyConfig(mixer).Grows()) continue;
    ServerOptions options;
    options.scheduler.bytes = 8 << 20;
    const RunningServer running(options, mixer);
    const Answer large = running.Post(
        "/v1/completions",
        {{"prompt", "a"}, {"n", 100}, {"max_tokens", 1000}, {"stream", true}, {"temperature", 0}});
    EXPECT_EQ(large.status, 400) << large.text;
    EXPECT_NE(large.text.find("MiB"), std::string::npos);
    EXPECT_EQ(running.Post("/v1/completions", {{"prompt", "a"}, {"n", 2}, {"max_tokens", 10}}).status, 200);
  }
}

}  // namespace
}  // namespace lattice::server
