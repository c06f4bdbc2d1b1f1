// One connection to Redis: commands and their replies, by hiredis's formatter and reader.
#ifndef LATTICE_SERVER_STORE_REDIS_CONNECTION_H_
#define LATTICE_SERVER_STORE_REDIS_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/redis_stream.h"
#include "server/store/state_store.h"

namespace lattice::server::store {

// A reply, as far as this program asks for anything: a text, an integer, nothing, or a list of those.
struct RedisReply {
  enum class Kind { kText, kInteger, kNothing, kList };
  Kind kind = Kind::kNothing;
  std::string text;
  int64_t integer = 0;
  std::vector<RedisReply> list;
};

// Used by one thread at a time. After an exception the connection must not be used any more: a late reply
// could be taken for that of the next command.
class RedisConnection {
 public:
  // Connects, logs in and selects the database. Throws StoreError (kUnavailable).
  RedisConnection(const RedisAddress& address, const StoreLimits& limits);
  ~RedisConnection();

  // Throws StoreError (kUnavailable) when no reply comes in time, the reply is an error or no Redis reply, or
  // it is larger than a session may be.
  RedisReply Command(const std::vector<std::string_view>& words);

 private:
  struct Reader;
  const StoreLimits limits_;
  RedisStream stream_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace lattice::server::store

#endif  // LATTICE_SERVER_STORE_REDIS_CONNECTION_H_
