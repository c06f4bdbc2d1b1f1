// The way of an answer from whoever makes it to the connection that sends it.
#ifndef LATTICE_SERVER_HTTP_REPLY_H_
#define LATTICE_SERVER_HTTP_REPLY_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/byte_budget.h"
#include "server/http/response.h"

namespace lattice::server::http {

class Connection;
class Reply;

// Is told when a stream that was full has room again, and when the client has hung up.
class ReplyListener {
 public:
  virtual ~ReplyListener() = default;
  // On the thread of the connections: must be quick.
  virtual void ReplyChanged() noexcept = 0;
};

// Replies that the thread of the connections is to look at. Adding one allocates nothing.
class ReadyReplies {
 public:
  // Becomes readable when there are some.
  explicit ReadyReplies(int event) : event_(event) {}
  void Add(std::shared_ptr<Reply> reply) noexcept;
  // All of them, as a list by Reply::next_ready_; null when there are none.
  std::shared_ptr<Reply> Take();
  void Wake() noexcept;

 private:
  const int event_;
  std::mutex mutex_;
  std::shared_ptr<Reply> first_;
};

// One answer: whole, or a stream whose bytes wait in a buffer of bounded size. What is written after the
// client has hung up is dropped. Held by a shared_ptr.
class Reply : public std::enable_shared_from_this<Reply> {
 public:
  Reply(ReadyReplies& ready, ByteBudget& budget, size_t stream_bytes, bool chunked);

  // For whoever answers, on any thread. False when the bytes of all answers leave no room for this one: then
  // nothing is sent and a smaller one must be.
  bool Send(Response response);
  // A stream with this status and these fields.
  void Begin(Response head);
  void Write(std::string_view bytes);
  void End();
  // Not to be answered: the connection ends. Nothing happens to what has been answered.
  void Abort() noexcept;
  // A stream holds as much as it may; the listener is told when that changes.
  bool Full();
  // The client has hung up: it sends nothing any more, and perhaps takes nothing either.
  bool HungUp() const;
  // Must be called before Full is asked. The listener is told at once when the client has hung up already.
  void Listen(std::weak_ptr<ReplyListener> listener);

  // For the connection.
  bool chunked() const { return chunked_; }
  struct Piece {
    std::optional<Response> head;  // the first piece
    bool stream = false;
    std::string bytes;  // of a stream, framed
    bool last = false;  // nothing comes behind it
    bool aborted = false;
  };
  Piece Take();
  void Sent(size_t bytes);
  // `dead`: the client cannot be answered any more.
  void HangUp(bool dead) noexcept;
  Connection* owner = nullptr;  // null when the connection has ended

 private:
  friend class ReadyReplies;
  void Tell() noexcept;

  ReadyReplies& ready_;
  const size_t stream_bytes_;
  const bool chunked_;

  mutable std::mutex mutex_;
  ReservedBytes reserved_;
  std::optional<Response> head_;
  std::string buffer_;
  size_t unsent_ = 0;  // of a stream, with what the connection has taken
  bool stream_ = false, ended_ = false, aborted_ = false, gone_ = false, hung_up_ = false,
       waits_for_room_ = false;
  std::weak_ptr<ReplyListener> listener_;

  // The list's.
  std::shared_ptr<Reply> next_ready_;
  bool listed_ = false;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_REPLY_H_
