#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "io/testing.h"
#include "server/api/embedded_files.h"
#include "server/api/security.h"
#include "server/raw_client.h"
#include "server/testing.h"

namespace lattice::server {
namespace {

using nlohmann::json;

const char* const kAsk = R"({"prompt": "a", "max_tokens": 2})";

bool Starts(const std::string& answer, int status) {
  return answer.starts_with("HTTP/1.1 " + std::to_string(status)) &&
         answer.find("\"error\"") != std::string::npos;
}

// The response to a client that sends `bytes` and then waits.
std::string ResponseTo(const RunningServer& running, const std::string& bytes) {
  RawClient client(running.port);
  client.Send(bytes);
  client.EndSending();
  return client.ReadAll();
}

TEST(Hostile, WhatIsNoRequestGetsAnError) {
  const RunningServer running;
  const std::string post =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  EXPECT_TRUE(Starts(ResponseTo(running, "rubbish\r\n\r\n"), 400));
  EXPECT_TRUE(Starts(ResponseTo(running, "GET /health HTTP/9.9\r\n\r\n"), 400));
  EXPECT_TRUE(Starts(
      ResponseTo(running, "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20000, 'x') + "\r\n\r\n"),
      431));
  EXPECT_TRUE(Starts(
      ResponseTo(running, "GET /" + std::string(600, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), 414));
  EXPECT_TRUE(Starts(ResponseTo(running, post + "Content-Length: x\r\n\r\n"), 400));
  EXPECT_TRUE(Starts(ResponseTo(running, post + "Content-Length: -1\r\n\r\n"), 400));
  EXPECT_TRUE(Starts(ResponseTo(running, post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"), 400));
  EXPECT_TRUE(
      Starts(ResponseTo(running, post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"), 400));
  EXPECT_TRUE(Starts(ResponseTo(running, post + "Content-Length: 99999999999\r\n\r\n{}"), 413));
  EXPECT_TRUE(Starts(ResponseTo(running, post + "Content-Length: 99999999999999999999999\r\n\r\n{}"), 400));
  EXPECT_TRUE(Starts(ResponseTo(running, post + "Content-Length: 50\r\n\r\n{\"prompt\""), 400))
      << "truncated";
  EXPECT_TRUE(
      Starts(ResponseTo(running, post + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"), 415));
  EXPECT_TRUE(Starts(ResponseTo(running, post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 400));
  EXPECT_TRUE(Starts(
      ResponseTo(running, "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"), 400));
  EXPECT_TRUE(Starts(ResponseTo(running, post + "Content-Length : 2\r\n\r\n{}"), 400));
  EXPECT_TRUE(Starts(
      ResponseTo(running, post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
      400));
  EXPECT_TRUE(Starts(ResponseTo(running, post + "Transfer-Encoding: %63hunked\r\n\r\n0\r\n\r\n"), 400));
  EXPECT_EQ(ResponseTo(running, ""), "");
  EXPECT_EQ(running.Get("/health").status, 200);
}

TEST(Hostile, ChunkedBodiesAreReadAndBounded) {
  ServerOptions options;
  options.body_bytes = 4096;
  const RunningServer running(options);
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  RawClient client(running.port);
  client.Send(head + "20\r\n" + kAsk + "\r\n0\r\n\r\n");
  const std::string answer = client.ReadUntil("usage");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_TRUE(Starts(ResponseTo(running, head + "2\r\n{}0\r\n\r\n"), 400)) << "a chunk without its CR LF";
  std::string endless = head;
  for (int i = 0; i < 100; ++i) endless += "40\r\n" + std::string(64, ' ') + "\r\n";
  EXPECT_TRUE(Starts(ResponseTo(running, endless), 413));
}

TEST(Hostile, PipelinedRequestsAreAllAnswered) {
  const RunningServer running;
  RawClient client(running.port);
  const std::string health = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  client.Send(health + health + health +
              "GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answers = client.ReadAll();
  size_t count = 0;
  for (size_t at = 0; (at = answers.find("{\"status\":\"ok\"}", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 3u) << answers;
  EXPECT_NE(answers.find("HTTP/1.1 404"), std::string::npos);
}

TEST(Hostile, RangesAreNotServed) {
  const RunningServer running;
  std::string ranges = "Range: bytes=0-1";
  while (ranges.size() < 15000) ranges += ",0-1";
  const std::string head = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  const std::string answer = ResponseTo(running, head + ranges + "\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer.substr(0, 200);
  EXPECT_LT(answer.size(), 100000u);
  const std::string hidden = ResponseTo(running, head + "X: a\n" + ranges + "\r\n\r\n");
  EXPECT_TRUE(Starts(hidden, 400)) << hidden.substr(0, 200);
  EXPECT_LT(hidden.size(), 2000u);
}

TEST(Hostile, NothingIsReadOrAnsweredBeforeTheKeyIsChecked) {
  ServerOptions options;
  options.key = "correct-horse-battery-%41-staple";
  const RunningServer running(options);
  RawClient client(running.port);
  client.Send(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
      "8000000\r\n\r\n");
  EXPECT_TRUE(Starts(client.ReadAll(), 401)) << "none of the body was sent";
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(Starts(ResponseTo(running, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"), 401));
  EXPECT_EQ(running.Get("/v1/models", {{"Authorization", "Bearer " + options.key}}).status, 200);
  EXPECT_EQ(running.Get("/v1/models", {{"Authorization", "Bearer correct-horse-battery-A-staple"}}).status,
            401);
}

TEST(Hostile, ErrorsAreShort) {
  const RunningServer running;
  for (const std::string& body :
       {"{\"prompt\": \"" + std::string(4 << 20, 'a'), "{\"" + std::string(1 << 20, 'b') + "\": 1}",
        "{\"prompt\": " + std::string(1 << 20, '7') + "}"}) {
    const Answer answer = running.Post("/v1/completions", body);
    EXPECT_EQ(answer.status, 400);
    EXPECT_LT(answer.text.size(), 4000u);
  }
}

TEST(Hostile, ANameThatIsNotUtf8IsRefused) {
  ServedModel served = TinyServed();
  served.name = "caf\xe9";
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Server server(served, {}); }), {"UTF-8", "--name"}));
}

TEST(Hostile, CurlWaitsForPermissionToSend) {
  const RunningServer running;
  RawClient client(running.port);
  const std::string head =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "13\r\n";
  client.Send(head + "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("{\"text\": \"a\"}");
  EXPECT_NE(client.ReadUntil("count").find("[97]"), std::string::npos);
  EXPECT_TRUE(Starts(ResponseTo(running, head + "Expect: wonders\r\n\r\n"), 417));
}

TEST(Hostile, SlowRequestsEnd) {
  ServerOptions options;
  options.http.connection.request = options.http.connection.head_time = std::chrono::seconds(1);
  options.http.connection.idle = std::chrono::seconds(1);
  const RunningServer running(options);
  RawClient header(running.port), body(running.port), still(running.port);
  header.Send("GET /health HTTP/1.1\r\nHost: ");
  body.Send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "90\r\n\r\n{");
  EXPECT_TRUE(Starts(header.ReadAll(), 408));
  EXPECT_TRUE(Starts(body.ReadAll(), 408));
  EXPECT_EQ(still.ReadAll(), "");
  EXPECT_TRUE(header.closed() && body.closed() && still.closed());
}

TEST(Hostile, TheKeyIsNeeded) {
  ServerOptions options;
  options.key = "correct-horse-battery-staple";
  const RunningServer running(options);
  EXPECT_EQ(running.Get("/health").status, 200);
  EXPECT_EQ(running.Get("/").status, 200);
  const Answer missing = running.Get("/v1/models");
  EXPECT_EQ(missing.status, 401);
  EXPECT_EQ(missing.body["error"]["code"], "invalid_api_key");
  for (const char* wrong :
       {"Bearer wrong", "Bearer ", "Bearer correct-horse-battery-stapl", "correct-horse-battery-staple",
        "Bearer correct-horse-battery-staplecorrect-horse-battery-staple"})
    EXPECT_EQ(running.Get("/v1/models", {{"Authorization", wrong}}).status, 401) << wrong;
  EXPECT_EQ(running.Post("/v1/completions", kAsk).status, 401);
  for (const Route& route : Routes()) {
    if (route.method != "GET" || !route.guarded) continue;
    EXPECT_EQ(running.Get(std::string(route.path)).status, 401) << route.path;
  }
  EXPECT_EQ(running.Get("/v1/models", {{"Authorization", "Bearer " + options.key}}).status, 200);
}

TEST(Hostile, OtherMachinesNeedAKeyAndOtherPagesAreRefused) {
  ServerOptions options;
  options.host = "0.0.0.0";
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { Server server(TinyServed(), options); }), {"0.0.0.0", "--api-key-file"}));
  const RunningServer running;
  EXPECT_EQ(running.Get("/v1/models", {{"Host", "evil.example"}}).status, 403);
  for (const char* host : {"localhost.evil.example", "127.0.0.1:80.evil.example",
                           "127.0.0.1:", "[::1].evil.example", "[::1", "localhost:123456", "127.0.0.1:x"})
    EXPECT_EQ(running.Get("/v1/models", {{"Host", host}}).status,
              std::string(host) == "127.0.0.1:" ? 200 : 403)
        << host;
  EXPECT_EQ(running.Get("/v1/models", {{"Origin", "http://evil.example"}}).status, 403);
  EXPECT_EQ(running.Get("/v1/models", {{"Origin", "null"}}).status, 403);
  const std::string host = "localhost:" + std::to_string(running.port);
  const Answer own = running.Get("/v1/models", {{"Host", host}, {"Origin", "http://" + host}});
  EXPECT_EQ(own.status, 200);
  EXPECT_FALSE(own.headers.contains("Access-Control-Allow-Origin"));
}

TEST(Hostile, PathsAndMethodsThatAreNot) {
  const RunningServer running;
  for (const char* path :
       {"/v1", "/v1/", "/v2/models", "/v1/sessions/x/y", "/v1/sessions//fork", "/page/../server.cc",
        "/page/%2e%2e%2fserver.cc", "/page//etc/passwd", "/%00", "/v1/models/other"})
    EXPECT_EQ(running.Get(path).status, 404) << path;
  const Answer wrong = running.Get("/v1/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.find("Allow")->second, "POST");
  EXPECT_TRUE(Starts(ResponseTo(running, "PATCH /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405));
  EXPECT_TRUE(Starts(ResponseTo(running, "OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405));
  EXPECT_TRUE(Starts(ResponseTo(running,
                                "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
                                "Content-Length: 2\r\n\r\n{}"),
                     415));
}

TEST(Hostile, EveryRouteOutlivesEveryBody) {
  const RunningServer running;
  const std::string id = running.NewSession({{"prompt", "abc"}});
  for (const Route& route : Routes()) {
    if (route.method != "POST") continue;
    std::string path(route.path);
    if (const size_t at = path.find("{id}"); at != std::string::npos) path.replace(at, 4, id);
    for (const char* body :
         {"{", "[]", "null", "3", "\"\xff\"", "{\"text\": \"\xff\"}", "{\"text\": 3}", "{\"tokens\": [300]}",
          "{\"tokens\": 3}", "{\"tokens\": [-1]}", "{\"position\": -1}", "{\"position\": 1e99}",
          "{\"position\": \"x\"}", "{\"prompt\": {}}", "{\"messages\": {}}", "{\"unknown\": 1}"}) {
      const Answer answer = running.Post(path, std::string(body));
      EXPECT_EQ(answer.status, 400) << path << " " << body << " " << answer.text;
      EXPECT_TRUE(answer.body.contains("error")) << path << " " << body;
    }
  }
  EXPECT_EQ(running.Get("/v1/sessions/" + id).body["position"], 3);
}

TEST(Hostile, AnswersThatWouldNotFitAreRefused) {
  const RunningServer running;
  const Answer answer =
      running.Post("/v1/completions",
                   {{"prompt", std::vector<std::string>(128, "a")}, {"max_tokens", 60000}, {"logprobs", 20}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body["error"]["param"], "max_tokens");
}

TEST(Page, IsServedWithItsHeaders) {
  const RunningServer running;
  const Answer page = running.Get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.find("Content-Type")->second, "text/html; charset=utf-8");
  EXPECT_NE(page.headers.find("Content-Security-Policy")->second.find("frame-ancestors 'none'"),
            std::string::npos);
  EXPECT_EQ(page.headers.find("X-Content-Type-Options")->second, "nosniff");
  EXPECT_EQ(page.text.find("<script>"), std::string::npos) << "the policy forbids scripts inside the page";
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (file.name == "index.html" || file.name == "openapi.json") continue;
    EXPECT_EQ(running.Get("/page/" + std::string(file.name)).text, file.content) << file.name;
  }
}

TEST(OpenApi, DescribesExactlyTheRoutes) {
  const json description = json::parse(OpenApiJson());
  std::set<std::string> described, served;
  for (const auto& [path, methods] : description["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      if (method == "parameters") continue;
      described.insert(method + " " + path);
      EXPECT_TRUE(operation.contains("responses")) << path;
    }
  }
  for (const Route& route : Routes()) {
    std::string method(route.method);
    for (char& letter : method) letter = static_cast<char>(std::tolower(letter));
    served.insert(method + " " + std::string(route.path));
  }
  EXPECT_EQ(described, served);
}

TEST(Key, IsReadFromAFileAndNeverShown) {
  const io::TestDir dir;
  const auto write = [&](const std::string& text) {
    std::ofstream(dir.path() / "key") << text;
    return dir.path() / "key";
  };
  EXPECT_EQ(ReadKeyFile(write("0123456789abcdef\n")), "0123456789abcdef");
  EXPECT_EQ(ReadKeyFile(write("0123456789abcdef  \r\nmore")), "0123456789abcdef");
  for (const char* bad : {"", "short", "0123456789 abcdef", "0123456789abc\xC3\xA9xyz"}) {
    const std::string error = io::ErrorOf([&] { ReadKeyFile(write(bad)); });
    EXPECT_TRUE(io::Says(error, {"16 to 512"}));
    EXPECT_EQ(error.find("0123456789"), std::string::npos) << error;
  }
  EXPECT_NE(io::ErrorOf([&] { ReadKeyFile(dir.path() / "none"); }), "no error");
}

}  // namespace
}  // namespace lattice::server
