// The hand-over of an answer from the thread that makes it to the connection that sends it.
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

// Notified when a stream that was full has room again, and when the client has hung up.
class ReplyListener {
 public:
  virtual ~ReplyListener() = default;
  // Called on the event loop's thread: must be quick.
  virtual void ReplyChanged() noexcept = 0;
};

// The list of replies with something to send, which wakes the event loop. Adding a reply allocates nothing.
class ReadyReplies {
 public:
  // `event` is an eventfd; it becomes readable when the list is not empty.
  explicit ReadyReplies(int event) : event_(event) {}
  void Add(std::shared_ptr<Reply> reply) noexcept;
  // Removes and returns one; null when there is none.
  std::shared_ptr<Reply> Take();
  void Wake() noexcept;

 private:
  const int event_;
  std::mutex mutex_;
  std::shared_ptr<Reply> first_;
};

// One answer: whole, or a stream with a buffer and back-pressure (Full). What is written after the client is
// gone is discarded. Must be held by a shared_ptr.
class Reply : public std::enable_shared_from_this<Reply> {
 public:
  Reply(ReadyReplies& ready, ByteBudget& budget, size_t stream_bytes, bool chunked);

  // The producer's side; any thread.

  // Sends a whole answer. False when the byte budget has no room for it: then nothing is sent, and a smaller
  // answer must be.
  bool Send(Response response);
  // Begins a stream with this status and these header fields.
  void Begin(Response head);
  void Write(std::string_view bytes);
  void End();
  // Ends the connection without an answer. Does nothing once the answer is complete.
  void Abort() noexcept;
  // Back-pressure: whether the stream holds as many unsent bytes as it may. If so, the listener is notified
  // when it has room again.
  bool Full();
  // Whether the client has closed its sending side; it may or may not still read.
  bool HungUp() const;
  // Must be called before Full. The listener is notified at once if the client has hung up already.
  void Listen(std::weak_ptr<ReplyListener> listener);

  // The connection's side; the event loop's thread.

  bool chunked() const { return chunked_; }
  struct Piece {
    std::optional<Response> head;  // in the first piece
    bool stream = false;
    std::string bytes;  // of a stream, chunked if it is to be
    bool last = false;  // the answer ends here
    bool aborted = false;
  };
  Piece Take();
  void Sent(size_t bytes);
  // The client has closed its sending side or, if `dead`, the whole connection is gone.
  void HangUp(bool dead) noexcept;
  Connection* owner = nullptr;  // null once the connection has ended

 private:
  friend class ReadyReplies;
  void NotifyListener() noexcept;

  ReadyReplies& ready_;
  const size_t stream_bytes_;
  const bool chunked_;

  mutable std::mutex mutex_;
  ReservedBytes reserved_;
  std::optional<Response> head_;
  std::string buffer_;
  size_t unsent_ = 0;  // bytes of a stream that are not sent yet, including those the connection has taken
  bool stream_ = false, ended_ = false, aborted_ = false, gone_ = false, hung_up_ = false,
       waits_for_room_ = false;
  std::weak_ptr<ReplyListener> listener_;

  // Members of the ReadyReplies list.
  std::shared_ptr<Reply> next_ready_;
  bool listed_ = false;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_REPLY_H_
