// What every store promises, and servers that share one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "io/failing_calls.h"
#include "server/store/directory_store.h"
#include "server/store/redis_url.h"
#include "server/testing.h"

namespace lattice::server {
namespace {

using nlohmann::json;
using store::Acquired;
using store::DirectoryStore;
using store::Failure;
using store::StoreError;
using store::StoreLimits;
namespace fs = std::filesystem;

// A directory that is removed with the object.
class Folder {
 public:
  Folder() : path(fs::temp_directory_path() / RandomId("lattice-store-")) {}
  ~Folder() { fs::remove_all(path); }
  const fs::path path;
};

const std::string kId = "session-" + std::string(32, 'a'), kOther = "session-" + std::string(32, 'b');

store::Put New(const std::string& id, std::string_view value, const std::string& owner = "") {
  return {id, "t", "", "1", value, owner, true};
}

Failure FailureOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const StoreError& error) {
    return error.failure();
  }
  ADD_FAILURE() << "no error";
  return Failure::kUnavailable;
}

TEST(DirectoryStore, OneWriterAtATime) {
  const Folder folder;
  DirectoryStore one(folder.path, {}), two(folder.path, {});
  EXPECT_EQ(one.Acquire(kId, "a", "").outcome, Acquired::Outcome::kMissing);
  one.Write(New(kId, "first"));
  const Acquired held = one.Acquire(kId, "a", "");
  ASSERT_EQ(held.outcome, Acquired::Outcome::kHeld);
  EXPECT_EQ(held.value, "first");
  EXPECT_EQ(held.stamp, "1");
  const Acquired busy = two.Acquire(kId, "b", "");
  EXPECT_EQ(busy.outcome, Acquired::Outcome::kBusy);
  EXPECT_GT(busy.left.count(), 0);
  EXPECT_EQ(FailureOf([&] { two.Write({kId, "b", "1", "2", "stolen", "", true}); }), Failure::kLost);
  one.Write({kId, "a", "1", "2", "second", "", true});
  const Acquired next = two.Acquire(kId, "b", "2");
  ASSERT_EQ(next.outcome, Acquired::Outcome::kHeld);
  EXPECT_FALSE(next.value) << "the value with this stamp is known";
  EXPECT_EQ(FailureOf([&] { one.Write(New(kId, "again")); }), Failure::kLost) << "the session exists";
}

// What SIGSTOP does to a server: its lease runs out, another takes over, and it wakes up.
TEST(DirectoryStore, AServerThatWasPausedCannotOverwrite) {
  const Folder folder;
  StoreLimits brief;
  brief.lease = std::chrono::milliseconds(30);
  DirectoryStore paused(folder.path, brief), other(folder.path, {});
  paused.Write(New(kId, "first"));
  ASSERT_EQ(paused.Acquire(kId, "p", "").outcome, Acquired::Outcome::kHeld);
  ASSERT_TRUE(Eventually([&] { return other.Acquire(kId, "o", "").outcome == Acquired::Outcome::kHeld; }));
  EXPECT_FALSE(paused.Renew(kId, "p"));
  EXPECT_EQ(FailureOf([&] { paused.Write({kId, "p", "1", "2", "late", "", true}); }), Failure::kLost);
  other.Write({kId, "o", "1", "2", "newer", "", true});
  EXPECT_EQ(FailureOf([&] { paused.Write({kId, "p", "1", "3", "late", "", true}); }), Failure::kLost);
  EXPECT_EQ(other.Acquire(kId, "o", "").value, "newer");
  EXPECT_TRUE(other.Renew(kId, "o"));
}

TEST(DirectoryStore, TheOldestGoFirstAndThoseInUseStay) {
  const Folder folder;
  StoreLimits small;
  small.sessions = 16;
  DirectoryStore store(folder.path, small);
  std::vector<std::string> ids;
  for (int i = 0; i < 16; ++i) {
    ids.push_back(RandomId("session-"));
    store.Write(New(ids.back(), "value", "alice"));
  }
  EXPECT_EQ(store.CountOf("alice"), 16);
  ASSERT_EQ(store.Acquire(ids[0], "u", "").outcome, Acquired::Outcome::kHeld);
  store.Write(New(kId, "one more", "alice"));
  EXPECT_EQ(store.Acquire(ids[0], "u", "").outcome, Acquired::Outcome::kHeld);
  EXPECT_EQ(store.Acquire(ids[1], "u", "").outcome, Acquired::Outcome::kMissing);
  EXPECT_EQ(store.Acquire(kId, "u", "").outcome, Acquired::Outcome::kHeld);
  EXPECT_LE(store.Figures().sessions, 16);
  EXPECT_EQ(store.CountOf("alice"), store.Figures().sessions);
  EXPECT_TRUE(store.Remove(kId));
  EXPECT_FALSE(store.Remove(kId));
}

TEST(DirectoryStore, BytesAreBounded) {
  const Folder folder;
  StoreLimits small;
  small.bytes = 10'000;
  small.value_bytes = 5'000;
  DirectoryStore store(folder.path, small);
  const std::string value(3'000, 'x');
  for (int i = 0; i < 20; ++i) store.Write(New(RandomId("session-"), value));
  EXPECT_LE(store.Figures().bytes, 10'000);
  EXPECT_EQ(FailureOf([&] { store.Write(New(kId, std::string(6'000, 'x'))); }), Failure::kFull);
}

TEST(DirectoryStore, AFullDiskLeavesTheOldValue) {
  const Folder folder;
  DirectoryStore store(folder.path, {});
  store.Write(New(kId, "first"));
  ASSERT_EQ(store.Acquire(kId, "a", "").outcome, Acquired::Outcome::kHeld);
  {
    io::FailingCalls full(0, ENOSPC, 100);
    const io::ScopedWriteCalls scoped(full);
    EXPECT_EQ(FailureOf([&] {
                store.Write({kId, "a", "1", "2", "second", "", true});
              }),
              Failure::kUnavailable);
  }
  EXPECT_EQ(store.Acquire(kId, "a", "").value, "first");
}

TEST(RedisUrl, IsStrict) {
  const store::RedisAddress address = store::ParseRedisUrl("redis://example.org:7000/3");
  EXPECT_EQ(address.host, "example.org");
  EXPECT_EQ(address.port, 7000);
  EXPECT_EQ(address.database, 3);
  EXPECT_FALSE(address.tls);
  EXPECT_TRUE(store::ParseRedisUrl("rediss://h").tls);
  EXPECT_EQ(store::ParseRedisUrl("redis://[::1]:1").host, "::1");
  for (const char* wrong : {"redis://", "redis://h:x", "redis://h/x", "redis://h:70000", "http://h",
                            "redis://user:secret@h", "redis://:secret@h"}) {
    try {
      store::ParseRedisUrl(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos) << error.what();
    }
  }
}

ServerOptions WithStore(const Folder& folder, const StoreLimits& limits = {}) {
  ServerOptions options;
  options.store = std::make_shared<DirectoryStore>(folder.path, limits);
  options.lease = limits.lease;
  options.seal.key = "the key of all servers";
  return options;
}

std::string TextFrom(const Answer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.text;
  return answer.status == 200 ? answer.body["choices"][0]["text"] : json("");
}

const json kMore = {{"max_tokens", 6}, {"temperature", 0}};

json Of(const std::string& id, json request = kMore) {
  request["session"] = id;
  return request;
}

// Two servers serve the same sessions in turn, and a third continues when both are gone.
TEST(StoredSessions, MoveBetweenServersBitEqual) {
  const Folder folder;
  const RunningServer alone;
  const std::string expected = TextFrom(alone.Post(
      "/v1/completions", {{"prompt", "Once upon a time"}, {"max_tokens", 24}, {"temperature", 0}}));
  std::string id, text;
  {
    const RunningServer one(WithStore(folder)), two(WithStore(folder));
    id = one.NewSession({{"prompt", "Once upon"}});
    EXPECT_EQ(two.Post("/v1/sessions/" + id + "/append", json{{"text", " a time"}}).body["position"], 16);
    text += TextFrom(one.Post("/v1/completions", Of(id)));
    text += TextFrom(two.Post("/v1/completions", Of(id)));
    text += TextFrom(two.Post("/v1/completions", Of(id)));
    EXPECT_EQ(one.Get("/v1/sessions/" + id).body["position"], 34);
  }
  const RunningServer three(WithStore(folder));
  text += TextFrom(three.Post("/v1/completions", Of(id)));
  EXPECT_EQ(text, expected);
  EXPECT_EQ(three.Post("/v1/sessions/" + id + "/rewind", json{{"position", 20}}).body["position"], 20);
  EXPECT_EQ(three.Delete("/v1/sessions/" + id).status, 200);
  EXPECT_EQ(three.Get("/v1/sessions/" + id).status, 404);
}

TEST(StoredSessions, AnotherServersLeaseIsRespected) {
  const Folder folder;
  const RunningServer running(WithStore(folder));
  const std::string id = running.NewSession({{"prompt", "abc"}});
  DirectoryStore other(folder.path, {});
  ASSERT_EQ(other.Acquire(id, "other", "").outcome, Acquired::Outcome::kHeld);
  const Answer busy = running.Post("/v1/completions", Of(id));
  EXPECT_EQ(busy.status, 409) << busy.text;
  EXPECT_EQ(busy.headers.count("Retry-After"), 1u);
  other.Release(id, "other");
  EXPECT_EQ(running.Post("/v1/completions", Of(id)).status, 200);
}

// The lease is lost while a request is computed: the request fails, and the newer state stays.
TEST(StoredSessions, ARequestThatLostItsLeaseChangesNothing) {
  const Folder folder;
  const RunningServer running(WithStore(folder));
  const std::string id = running.NewSession({{"prompt", "abc"}});
  std::thread slow([&] {
    const Answer answer =
        running.Post("/v1/completions", Of(id, {{"max_tokens", 8000}, {"temperature", 0}, {"stream", true}}));
    EXPECT_NE(answer.text.find("session_lost"), std::string::npos) << answer.text.substr(0, 500);
  });
  ASSERT_TRUE(Eventually([&] { return running.server.metrics().chosen_tokens > 5; }));
  DirectoryStore other(folder.path, {});
  EXPECT_TRUE(other.Remove(id));
  slow.join();
  EXPECT_EQ(running.Get("/v1/sessions/" + id).status, 404);
}

TEST(StoredSessions, LeaveMemory) {
  const Folder folder;
  ServerOptions options = WithStore(folder);
  options.sessions.count = 8;
  const RunningServer running(std::move(options));
  std::vector<std::string> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(running.NewSession({{"prompt", "text " + std::to_string(i)}}));
  EXPECT_GT(running.server.metrics().sessions_left_memory, 20);
  const RunningServer alone;
  for (const int i : {0, 17, 39}) {
    EXPECT_EQ(TextFrom(running.Post("/v1/completions", Of(ids[static_cast<size_t>(i)]))),
              TextFrom(alone.Post(
                  "/v1/completions",
                  {{"prompt", "text " + std::to_string(i)}, {"max_tokens", 6}, {"temperature", 0}})));
  }
  const std::string metrics = running.Get("/metrics").text;
  EXPECT_NE(metrics.find("lattice_store_sessions 40"), std::string::npos) << metrics;
}

TEST(StoredSessions, DamageIsNoticed) {
  const Folder folder;
  std::string id, second;
  {
    const RunningServer running(WithStore(folder));
    id = running.NewSession({{"prompt", "abc"}});
    second = running.NewSession({{"prompt", "xyz"}});
  }
  const auto file = [&](const std::string& of) { return folder.path / of.substr(8, 2) / (of + ".state"); };
  const auto size = static_cast<std::streamoff>(fs::file_size(file(id)));
  {
    std::fstream damage(file(id), std::ios::in | std::ios::out | std::ios::binary);
    damage.seekp(size / 2);
    damage.put('\x7f');
  }
  const RunningServer running(WithStore(folder));
  const Answer answer = running.Get("/v1/sessions/" + id);
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body["error"]["code"], "session_damaged");
  // The value of one session under the name of another.
  fs::copy_file(file(second), file(id), fs::copy_options::overwrite_existing);
  EXPECT_EQ(running.Get("/v1/sessions/" + id).body["error"]["code"], "session_damaged");
  ServerOptions other_key = WithStore(folder);
  other_key.seal.key = "another key than before";
  const RunningServer stranger(std::move(other_key));
  EXPECT_EQ(stranger.Get("/v1/sessions/" + second).body["error"]["code"], "session_damaged");
  EXPECT_EQ(running.Get("/v1/sessions/" + second).status, 200);
}

TEST(StoredSessions, RepeatedRequestsAreAppliedOnce) {
  const Folder folder;
  const RunningServer one(WithStore(folder)), two(WithStore(folder)), memory;
  const httplib::Headers key = {{"Idempotency-Key", "first-append"}};
  for (const RunningServer* server : {&one, &memory}) {
    const RunningServer& again = server == &one ? two : memory;
    const std::string id = server->NewSession({{"prompt", "abc"}}), path = "/v1/sessions/" + id + "/append";
    const std::string body = R"({"text": "def"})";
    const Answer first = server->Post(path, body, key), second = again.Post(path, body, key);
    EXPECT_EQ(first.body["position"], 6);
    EXPECT_EQ(first.text, second.text);
    EXPECT_EQ(second.headers.count("Idempotent-Replayed"), 1u);
    EXPECT_EQ(again.Get("/v1/sessions/" + id).body["position"], 6);
    EXPECT_EQ(again.Post(path, std::string(R"({"text": "other"})"), key).status, 422);
    EXPECT_EQ(again.Post(path, body, {{"Idempotency-Key", std::string(256, 'k')}}).status, 400);
    json streamed = Of(id);
    streamed["stream"] = true;
    const httplib::Headers stream_key = {{"Idempotency-Key", "stream"}};
    const Answer a = server->Post("/v1/completions", streamed.dump(), stream_key),
                 b = again.Post("/v1/completions", streamed.dump(), stream_key);
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(again.Get("/v1/sessions/" + id).body["position"], 12);
  }
  EXPECT_EQ(one.Post("/v1/completions", R"({"prompt": "x"})", key).status, 400);
}

TEST(StoredSessions, DurabilityEveryFewTokensAndAtTheEnd) {
  for (const char* level : {"tokens=10", "end"}) {
    const Folder folder;
    std::string id;
    DirectoryStore other(folder.path, {});
    {
      ServerOptions options = WithStore(folder);
      options.durability = ParseDurability(level);
      const RunningServer running(std::move(options));
      id = running.NewSession({{"prompt", "abc"}});
      EXPECT_EQ(running.Post("/v1/completions", Of(id)).status, 200);
      EXPECT_EQ(other.Acquire(id, "o", "").outcome, Acquired::Outcome::kBusy)
          << "not stored, so the lease is kept";
      const int64_t before = running.server.metrics().store_writes;
      EXPECT_EQ(running.Post("/v1/completions", Of(id, {{"max_tokens", 30}})).status, 200);
      const int64_t writes = running.server.metrics().store_writes - before;
      EXPECT_EQ(writes > 0, std::string(level) != "end") << level;
    }
    const RunningServer later(WithStore(folder));
    EXPECT_EQ(later.Get("/v1/sessions/" + id).body["position"], 39) << level;
  }
  for (const char* wrong : {"", "tokens", "tokens=0", "tokens=x", "ends"})
    EXPECT_THROW(ParseDurability(wrong), Error) << wrong;
}

TEST(StoredSessions, ReadyAndDraining) {
  const Folder folder;
  RunningServer running(WithStore(folder));
  EXPECT_EQ(running.Get("/health/live").status, 200);
  EXPECT_EQ(running.Get("/health/ready").status, 200);
  fs::rename(folder.path, folder.path.string() + ".away");
  EXPECT_EQ(running.Get("/health/ready").status, 503);
  EXPECT_EQ(running.Get("/health/ready").body["status"], "store_unreachable");
  fs::rename(folder.path.string() + ".away", folder.path);
  EXPECT_EQ(running.Get("/health/ready").status, 200);
  running.server.StartDraining();
  EXPECT_EQ(running.Get("/health/ready").body["status"], "draining");
  EXPECT_EQ(running.Get("/health/live").status, 200);
}

TEST(StoredSessions, CompressedOnesAreTheSame) {
  const Folder folder;
  ServerOptions options = WithStore(folder);
  options.compress = true;
  std::string id;
  {
    const RunningServer running(std::move(options));
    id = running.NewSession({{"prompt", "compressed"}});
  }
  const RunningServer plain(WithStore(folder));
  EXPECT_EQ(plain.Get("/v1/sessions/" + id).body["position"], 10);
}

}  // namespace
}  // namespace lattice::server
