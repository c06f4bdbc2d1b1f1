// A running server with a small untrained model, and a client for it, for tests.
#ifndef LATTICE_SERVER_TESTING_H_
#define LATTICE_SERVER_TESTING_H_

#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/memory_return.h"
#include "runtime/testing.h"
#include "server/server.h"
#include "text/testing.h"

namespace lattice::server {

// As in `lattice serve`.
inline const bool kOneArena = (UseOneArena(), true);

inline ServedModel TinyServed(std::string_view mixer = "lattice_dec") {
  model::ModelConfig config = runtime::TinyConfig(mixer);
  config.vocab_size = 264;  // more ids than the tokenizer has: the rest must never be sampled
  const auto model = runtime::Model::Untrained(config, 7, runtime::WeightFormat::kF32);
  // Without an end-of-text token, so that a text ends only where a test says so.
  return {"tiny", model, std::make_shared<text::SpecialBytes>(257, text::SpecialIds{}), 1};
}

struct Answer {
  int status = 0;
  nlohmann::json body;  // null when it is not JSON
  std::string text;
  httplib::Headers headers;
};

class RunningServer {
 public:
  explicit RunningServer(ServerOptions options = {}, std::string_view mixer = "lattice_dec")
      : server(TinyServed(mixer), WithDefaults(std::move(options))), port(server.Start()) {}

  Answer Get(const std::string& path, const httplib::Headers& headers = {}) const {
    return Read(Client().Get(path, headers));
  }
  Answer Delete(const std::string& path) const { return Read(Client().Delete(path)); }
  Answer Post(const std::string& path, const std::string& body, const httplib::Headers& headers = {}) const {
    return Read(Client().Post(path, headers, body, "application/json"));
  }
  Answer Post(const std::string& path, const char* body) const { return Post(path, std::string(body)); }
  Answer Post(const std::string& path, const nlohmann::json& body) const { return Post(path, body.dump()); }
  Answer Put(const std::string& path, const std::string& body) const {
    return Read(Client().Put(path, body, "application/octet-stream"));
  }
  std::string NewSession(const nlohmann::json& body) const {
    const Answer answer = Post("/v1/sessions", body);
    EXPECT_EQ(answer.status, 201) << answer.text;
    return answer.body.value("id", "");
  }

  Server server;
  const int port;

 private:
  static ServerOptions WithDefaults(ServerOptions options) {
    options.port = 0;
    options.threads = 1;
    options.grace = std::min(options.grace, std::chrono::seconds(2));
    return options;
  }
  httplib::Client Client() const {
    httplib::Client client("127.0.0.1", port);
    client.set_read_timeout(60);
    return client;
  }
  static Answer Read(const httplib::Result& result) {
    if (!result) return {};
    return {result->status, nlohmann::json::parse(result->body, nullptr, false), result->body,
            result->headers};
  }
};

// Polls until the condition is true; false after five minutes (sanitizers and emulators are slow).
template <typename Condition>
bool Eventually(const Condition& condition) {
  for (int i = 0; i < 60000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// The JSON of every `data:` line but the last, which must be [DONE].
inline std::vector<nlohmann::json> StreamOf(const std::string& text) {
  std::vector<nlohmann::json> out;
  bool done = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find("\n\n", at);
    const std::string line = text.substr(at, end - at);
    EXPECT_TRUE(line.starts_with("data: ")) << line;
    EXPECT_FALSE(done) << "something behind [DONE]";
    done = line == "data: [DONE]";
    if (!done) out.push_back(nlohmann::json::parse(line.substr(6)));
    at = end + 2;
  }
  EXPECT_TRUE(done) << text;
  return out;
}

}  // namespace lattice::server

#endif  // LATTICE_SERVER_TESTING_H_
