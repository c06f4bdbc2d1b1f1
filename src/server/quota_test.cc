// Accounts: quotas, fairness between keys, deadlines, and the access log.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include "server/api/accounts.h"
#include "server/testing.h"

namespace lattice::server {
namespace {

using nlohmann::json;

const std::string kAlice = "alice-has-this-key", kBob = "bob-has-another-key";

httplib::Headers By(const std::string& key) { return {{"Authorization", "Bearer " + key}}; }

ServerOptions WithAccounts(int64_t tokens_per_minute, int64_t sessions) {
  ServerOptions options;
  options.accounts = {{"alice", kAlice, tokens_per_minute, sessions}, {"bob", kBob}};
  return options;
}

TEST(Accounts, TokensComeBackWithTime) {
  Accounts accounts({{"a", kAlice, 60, 0}, {"b", kBob}});
  const Account& a = *accounts.Find("Bearer " + kAlice);
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(accounts.Find("Bearer nobody-has-this-key"), nullptr);
  const auto start = Accounts::Clock::now();
  EXPECT_EQ(accounts.WaitFor(a, start).count(), 0);
  accounts.Charge(a, 100, start);
  EXPECT_GE(accounts.WaitFor(a, start).count(), 40);
  EXPECT_EQ(accounts.WaitFor(a, start + std::chrono::seconds(60)).count(), 0);
  const Account& b = *accounts.Find("Bearer " + kBob);
  accounts.Charge(b, 1'000'000, start);
  EXPECT_EQ(accounts.WaitFor(b, start).count(), 0);
}

TEST(Accounts, TheFileIsChecked) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / RandomId("lattice-keys-");
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return ReadAccounts(path);
  };
  const auto accounts = read(
      "[alice]\nkey = \"alice-has-this-key\"\ntokens_per_minute = 5\n[bob]\nkey = "
      "\"bob-has-another-key\"\nsessions = 3\n");
  ASSERT_EQ(accounts.size(), 2u);
  EXPECT_EQ(accounts[0].tokens_per_minute, 5);
  EXPECT_EQ(accounts[1].sessions, 3);
  for (const char* wrong :
       {"", "key = \"alice-has-this-key\"", "[alice]\n", "[alice]\nkey = \"short\"",
        "[Alice/..]\nkey = \"alice-has-this-key\"", "[alice]\nkey = \"alice-has-this-key\"\ntokens = 3",
        "[alice]\nkey = \"alice-has-this-key\"\nsessions = -1",
        "[a]\nkey = \"alice-has-this-key\"\n[b]\nkey = \"alice-has-this-key\"\n"}) {
    try {
      read(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("alice-has-this-key"), std::string::npos) << error.what();
    }
  }
  std::filesystem::remove(path);
}

TEST(Quotas, TokensAndSessionsAreCountedForEachKey) {
  const RunningServer running(WithAccounts(50, 2));
  const std::string ask = R"({"prompt": "abc", "max_tokens": 60})";
  EXPECT_EQ(running.Post("/v1/completions", ask).status, 401);
  EXPECT_EQ(running.Post("/v1/completions", ask, By(kAlice)).status, 200);
  const Answer over = running.Post("/v1/completions", ask, By(kAlice));
  EXPECT_EQ(over.status, 429);
  EXPECT_EQ(over.body["error"]["code"], "token_quota");
  EXPECT_GE(std::stoi(over.headers.find("Retry-After")->second), 1);
  EXPECT_EQ(running.Post("/v1/completions", ask, By(kBob)).status, 200);
  const RunningServer few(WithAccounts(0, 2));
  std::string id;
  for (int i = 0; i < 2; ++i) id = few.Post("/v1/sessions", std::string("{}"), By(kAlice)).body["id"];
  EXPECT_EQ(few.Post("/v1/sessions", std::string("{}"), By(kAlice)).body["error"]["code"], "session_quota");
  EXPECT_EQ(few.Post("/v1/sessions/" + id + "/fork", std::string("{}"), By(kAlice)).status, 429);
  EXPECT_EQ(few.Get("/v1/sessions/" + id, By(kBob)).status, 404) << "sessions belong to their key";
  EXPECT_EQ(few.Get("/v1/sessions/" + id, By(kAlice)).status, 200);
}

// One key has many texts waiting; another key's only text does not wait for them all.
TEST(Quotas, OneKeyDoesNotStarveAnother) {
  ServerOptions options = WithAccounts(0, 0);
  options.scheduler.running = 4;
  const RunningServer running(std::move(options));
  const std::string many = R"({"prompt": "abc", "max_tokens": 400, "temperature": 0})";
  std::vector<std::thread> clients;
  std::atomic<int> finished{0};
  for (int i = 0; i < 40; ++i)
    clients.emplace_back([&] {
      EXPECT_EQ(running.Post("/v1/completions", many, By(kAlice)).status, 200);
      ++finished;
    });
  EXPECT_TRUE(Eventually([&] { return running.server.metrics().waiting >= 20; }));
  EXPECT_EQ(running.Post("/v1/completions", many, By(kBob)).status, 200);
  EXPECT_LT(finished, 36) << "bob came last and waited for nearly all of alice's";
  for (std::thread& client : clients) client.join();
}

TEST(Quotas, RequestsEndAtTheirDeadline) {
  const RunningServer running;
  const std::string ask = R"({"prompt": "abc", "max_tokens": 60000})";
  const Answer late = running.Post("/v1/completions", ask, {{"X-Request-Timeout-Ms", "50"}});
  EXPECT_EQ(late.status, 503);
  EXPECT_EQ(late.body["error"]["code"], "timeout");
  for (const char* wrong : {"0", "-1", "x", "1e3", "99999999999"})
    EXPECT_EQ(running.Post("/v1/completions", ask, {{"X-Request-Timeout-Ms", wrong}}).status, 400) << wrong;
}

TEST(AccessLog, OneLineForEachRequestWithoutSecrets) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / RandomId("lattice-log-");
  std::string id;
  {
    ServerOptions options = WithAccounts(0, 0);
    options.access_log = path.string();
    const RunningServer running(std::move(options));
    httplib::Headers headers = By(kAlice);
    headers.emplace("X-Request-Id", "my-request.1");
    const Answer answer = running.Post(
        "/v1/completions", std::string(R"({"prompt": "a secret text", "max_tokens": 5})"), headers);
    EXPECT_EQ(answer.headers.find("X-Request-Id")->second, "my-request.1");
    id = running.Post("/v1/sessions", std::string("{}"), By(kAlice)).body["id"];
    running.Get("/v1/sessions/" + id, By(kAlice));
    headers = By(kBob);
    headers.emplace("X-Request-Id", "bad id\t{}");
    EXPECT_TRUE(running.Get("/v1/models", headers).headers.find("X-Request-Id")->second.starts_with("req-"));
    running.Get("/nothing");
    running.Get("/v1/models");
  }
  std::ifstream file(path);
  std::vector<json> lines;
  std::string all;
  for (std::string line; std::getline(file, line); all += line + "\n") lines.push_back(json::parse(line));
  EXPECT_EQ(lines.size(), 6u) << all;
  for (const std::string& secret : {kAlice, kBob, id, std::string("secret text")})
    EXPECT_EQ(all.find(secret), std::string::npos) << secret;
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [](const json& line) { return line["request_id"] == "my-request.1"; });
  ASSERT_NE(found, lines.end()) << all;
  EXPECT_EQ((*found)["account"], "alice");
  EXPECT_EQ((*found)["status"], 200);
  EXPECT_EQ((*found)["prompt_tokens"], 13);
  EXPECT_EQ((*found)["completion_tokens"], 5);
  EXPECT_NE(all.find("\"status\":401"), std::string::npos) << all;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lattice::server
