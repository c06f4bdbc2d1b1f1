// Commands to Redis over a RedisStream. hiredis makes the bytes of commands and reads those of replies; the
// limits are ours.
#include "server/store/redis_connection.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>

namespace lattice::server::store {
namespace {

constexpr size_t kMostElements = 64;  // of a list in a reply

RedisReply Converted(const redisReply& reply) {
  RedisReply out;
  switch (reply.type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      out.kind = RedisReply::Kind::kText;
      out.text.assign(reply.str, static_cast<size_t>(reply.len));
      break;
    case REDIS_REPLY_INTEGER:
      out.kind = RedisReply::Kind::kInteger;
      out.integer = reply.integer;
      break;
    case REDIS_REPLY_ARRAY:
      out.kind = RedisReply::Kind::kList;
      for (size_t i = 0; i < reply.elements; ++i) out.list.push_back(Converted(*reply.element[i]));
      break;
    case REDIS_REPLY_ERROR:
      ThrowUnavailable(std::string(reply.str, std::min<size_t>(200, static_cast<size_t>(reply.len))));
    default:
      break;
  }
  return out;
}

// hiredis allocates the elements of a list before it has seen any, so a garbled length must be refused first.
redisReplyObjectFunctions BoundedFunctions(const redisReplyObjectFunctions& all) {
  static decltype(all.createArray) create = all.createArray;
  redisReplyObjectFunctions bounded = all;
  bounded.createArray = [](const redisReadTask* task, int elements) -> void* {
    return elements > static_cast<int>(kMostElements) ? nullptr : create(task, elements);
  };
  return bounded;
}

}  // namespace

struct RedisConnection::Reader {
  Reader() : reader(::redisReaderCreate()) {
    if (reader == nullptr) ThrowUnavailable("out of memory");
    static redisReplyObjectFunctions functions = BoundedFunctions(*reader->fn);
    reader->fn = &functions;
  }
  ~Reader() { ::redisReaderFree(reader); }
  redisReader* reader;
};

RedisConnection::RedisConnection(const RedisAddress& address, const StoreLimits& limits)
    : limits_(limits),
      stream_(address, std::chrono::steady_clock::now() + limits.timeout),
      reader_(std::make_unique<Reader>()) {
  if (!address.password.empty()) {
    std::vector<std::string_view> login = {"AUTH"};
    if (!address.user.empty()) login.emplace_back(address.user);
    login.emplace_back(address.password);
    Command(login);
  }
  if (address.database != 0) Command({"SELECT", std::to_string(address.database)});
}

RedisConnection::~RedisConnection() = default;

RedisReply RedisConnection::Command(const std::vector<std::string_view>& words) {
  std::vector<const char*> starts;
  std::vector<size_t> lengths;
  for (const std::string_view word : words) {
    starts.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* formatted = nullptr;
  const long long size =
      ::redisFormatCommandArgv(&formatted, static_cast<int>(words.size()), starts.data(), lengths.data());
  if (size < 0) ThrowUnavailable("out of memory");
  const std::unique_ptr<char, decltype(&::redisFreeCommand)> command(formatted, ::redisFreeCommand);
  const auto deadline = std::chrono::steady_clock::now() + limits_.timeout;
  stream_.Send({formatted, static_cast<size_t>(size)}, deadline);
  int64_t received = 0;
  std::array<char, size_t{64} << 10> bytes;
  for (;;) {
    void* found = nullptr;
    if (::redisReaderGetReply(reader_->reader, &found) != REDIS_OK)
      ThrowUnavailable("what answers is not Redis, or its answer is garbled");
    if (found != nullptr) {
      const std::unique_ptr<redisReply, decltype(&::freeReplyObject)> reply(static_cast<redisReply*>(found),
                                                                            ::freeReplyObject);
      return Converted(*reply);
    }
    const size_t got = stream_.Receive(bytes, deadline);
    received += static_cast<int64_t>(got);
    if (received > limits_.value_bytes + (int64_t{1} << 20)) ThrowUnavailable("an answer without end");
    if (::redisReaderFeed(reader_->reader, bytes.data(), got) != REDIS_OK)
      ThrowUnavailable("a garbled answer");
  }
}

}  // namespace lattice::server::store
