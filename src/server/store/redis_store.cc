// The store of sessions in Redis: Lua scripts that compare the lease before they change anything.
#include "server/store/redis_store.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "server/store/redis_connection.h"

namespace lattice::server::store {
namespace {

using Kind = RedisReply::Kind;

// KEYS: lease, session. ARGV: token, milliseconds of the lease, known stamp.
constexpr std::string_view kAcquire = R"(
if redis.call('EXISTS', KEYS[2]) == 0 then return {'missing'} end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return {'busy', redis.call('PTTL', KEYS[1])} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local stamp = redis.call('HGET', KEYS[2], 's')
if stamp == ARGV[3] then return {'held', stamp} end
return {'held', stamp, redis.call('HGET', KEYS[2], 'd')}
)";

// KEYS: lease, session, index, owner. ARGV: token, stamp before, stamp, value, owner, id, milliseconds of the
// lease, release, now, milliseconds to live, most sessions.
constexpr std::string_view kWrite = R"(
local before = redis.call('HGET', KEYS[2], 's') or ''
if before == ARGV[3] then return 'ok' end
if before ~= ARGV[2] then return 'lost' end
if before ~= '' and redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('HSET', KEYS[2], 's', ARGV[3], 'd', ARGV[4], 'o', ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[10])
local ends = tonumber(ARGV[9]) + tonumber(ARGV[10])
redis.call('ZADD', KEYS[3], ends, ARGV[6])
if ARGV[5] ~= '' then redis.call('ZADD', KEYS[4], ends, ARGV[6]) end
if ARGV[8] == '1' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[7]) end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', '(' .. ARGV[9])
local over = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[11])
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[3], 0, over + 15)) do
    if over > 0 and id ~= ARGV[6] and redis.call('EXISTS', 'lattice:lease:' .. id) == 0 then
      local owner = redis.call('HGET', 'lattice:session:' .. id, 'o')
      redis.call('DEL', 'lattice:session:' .. id)
      redis.call('ZREM', KEYS[3], id)
      if owner and owner ~= '' then redis.call('ZREM', 'lattice:owner:' .. owner, id) end
      over = over - 1
    end
  end
end
return 'ok'
)";

// KEYS: lease. ARGV: token, milliseconds.
constexpr std::string_view kRenew =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('PEXPIRE', KEYS[1], "
    "ARGV[2])";
constexpr std::string_view kRelease =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])";

// KEYS: lease, session, index. ARGV: id.
constexpr std::string_view kRemove = R"(
local owner = redis.call('HGET', KEYS[2], 'o')
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[3], ARGV[1])
if owner and owner ~= '' then redis.call('ZREM', 'lattice:owner:' .. owner, ARGV[1]) end
return redis.call('DEL', KEYS[2])
)";

constexpr std::string_view kIndex = "lattice:index";

std::string LeaseKey(const std::string& id) { return "lattice:lease:" + id; }
std::string SessionKey(const std::string& id) { return "lattice:session:" + id; }
std::string OwnerKey(const std::string& owner) { return "lattice:owner:" + owner; }

std::string NowMilliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

[[noreturn]] void Garbled() {
  throw StoreError(Failure::kUnavailable, "[store] redis: an answer that was not expected");
}

class RedisStore : public StateStore {
 public:
  RedisStore(RedisAddress address, const StoreLimits& limits)
      : address_(std::move(address)),
        limits_(limits),
        lease_(std::to_string(limits.lease.count())),
        unused_(std::to_string(std::chrono::milliseconds(limits.unused).count())),
        sessions_(std::to_string(limits.sessions)) {
    Ping();
  }

  Acquired Acquire(const std::string& id, const std::string& token, const std::string& known) override {
    const RedisReply reply =
        Command({"EVAL", kAcquire, "2", LeaseKey(id), SessionKey(id), token, lease_, known});
    if (reply.kind != Kind::kList || reply.list.empty()) Garbled();
    const std::string& outcome = reply.list[0].text;
    Acquired out;
    if (outcome == "missing") return out;
    if (outcome == "busy" && reply.list.size() == 2) {
      out.outcome = Acquired::Outcome::kBusy;
      out.left = std::chrono::milliseconds(std::max<int64_t>(0, reply.list[1].integer));
      return out;
    }
    if (outcome != "held" || reply.list.size() < 2) Garbled();
    out.outcome = Acquired::Outcome::kHeld;
    out.stamp = reply.list[1].text;
    if (out.stamp == known) return out;
    if (reply.list.size() != 3 || reply.list[2].kind != Kind::kText) Garbled();
    out.value = reply.list[2].text;
    return out;
  }

  void Write(const Put& put) override {
    if (static_cast<int64_t>(put.value.size()) > limits_.value_bytes)
      throw StoreError(Failure::kFull, StrCat("[store] a session of ", put.value.size(), " bytes; at most ",
                                              limits_.value_bytes, " are stored"));
    const RedisReply reply =
        Command({"EVAL", kWrite, "4", LeaseKey(put.id), SessionKey(put.id), kIndex, OwnerKey(put.owner),
                 put.token, put.before, put.stamp, put.value, put.owner, put.id, lease_,
                 put.release ? "1" : "0", NowMilliseconds(), unused_, sessions_});
    if (reply.text == "lost")
      throw StoreError(Failure::kLost, StrCat("[store] the lease of ", put.id, " was lost"));
    if (reply.text != "ok") Garbled();
  }

  bool Renew(const std::string& id, const std::string& token) override {
    return Command({"EVAL", kRenew, "1", LeaseKey(id), token, lease_}).integer == 1;
  }
  void Release(const std::string& id, const std::string& token) override {
    Command({"EVAL", kRelease, "1", LeaseKey(id), token});
  }
  bool Remove(const std::string& id) override {
    return Command({"EVAL", kRemove, "3", LeaseKey(id), SessionKey(id), kIndex, id}).integer == 1;
  }
  int64_t CountOf(const std::string& owner) override {
    Command({"ZREMRANGEBYSCORE", OwnerKey(owner), "-inf", StrCat("(", NowMilliseconds())});
    return Command({"ZCARD", OwnerKey(owner)}).integer;
  }
  void Ping() override {
    if (Command({"PING"}).text != "PONG") Garbled();
  }
  StoreFigures Figures() override { return {Command({"ZCARD", kIndex}).integer, -1}; }

 private:
  // A connection that nobody uses; null when there is none. There are never more than threads that call at once.
  std::unique_ptr<RedisConnection> Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  // The scripts may be repeated: a second call finds what the first has done and says the same.
  RedisReply Command(const std::vector<std::string_view>& words) {
    auto connection = Take();
    const bool used_before = connection != nullptr;
    if (!used_before) connection = std::make_unique<RedisConnection>(address_, limits_);
    const auto start = std::chrono::steady_clock::now();
    RedisReply reply;
    try {
      reply = connection->Command(words);
    } catch (const StoreError&) {
      // The other connections were made for the same server, which may have been restarted since.
      {
        const std::lock_guard lock(mutex_);
        idle_.clear();
      }
      if (!used_before || std::chrono::steady_clock::now() - start > limits_.timeout / 2) throw;
      connection = std::make_unique<RedisConnection>(address_, limits_);
      reply = connection->Command(words);
    }
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
    return reply;
  }

  const RedisAddress address_;
  const StoreLimits limits_;
  const std::string lease_, unused_, sessions_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RedisConnection>> idle_;
};

}  // namespace

std::unique_ptr<StateStore> OpenRedis(const RedisAddress& address, const StoreLimits& limits) {
  return std::make_unique<RedisStore>(address, limits);
}

}  // namespace lattice::server::store
