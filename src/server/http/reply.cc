// The thread-safe hand-over of a response, whole or streamed, from workers to the event loop, with
// back-pressure.
#include "server/http/reply.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lattice::server::http {
namespace {

constexpr size_t kChunkExtra = 32;  // at least the framing of a chunk: its size and line ends

}  // namespace

void ReadyReplies::Add(std::shared_ptr<Reply> reply) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (reply->listed_) return;
    reply->listed_ = true;
    const bool was_empty = first_ == nullptr;
    reply->next_ready_ = std::move(first_);
    first_ = std::move(reply);
    if (!was_empty) return;
  }
  Wake();
}

void ReadyReplies::Wake() noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_, &one, sizeof(one));
}

std::shared_ptr<Reply> ReadyReplies::Take() {
  const std::lock_guard lock(mutex_);
  if (first_ == nullptr) return nullptr;
  std::shared_ptr<Reply> reply = std::move(first_);
  first_ = std::move(reply->next_ready_);
  reply->listed_ = false;
  return reply;
}

Reply::Reply(ReadyReplies& ready, ByteBudget& budget, size_t stream_bytes, bool chunked)
    : ready_(ready), stream_bytes_(stream_bytes), chunked_(chunked), reserved_(budget) {}

bool Reply::Send(Response response) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return true;
    if (!reserved_.Resize(static_cast<int64_t>(response.body.size()))) return false;
    head_ = std::move(response);
    ended_ = true;
  }
  ready_.Add(shared_from_this());
  return true;
}

void Reply::Begin(Response head) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    stream_ = true;
    head_ = std::move(head);
  }
  ready_.Add(shared_from_this());
}

void Reply::Write(std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    const size_t before = buffer_.size();
    // Allocate first, so that no partial chunk is left in the buffer if memory runs out.
    buffer_.reserve(before + bytes.size() + kChunkExtra);
    if (chunked_) {
      AppendChunk(bytes, buffer_);
    } else {
      buffer_ += bytes;
    }
    unsent_ += buffer_.size() - before;
  }
  ready_.Add(shared_from_this());
}

void Reply::End() {
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    if (chunked_) buffer_ += kLastChunk;
    ended_ = true;
  }
  ready_.Add(shared_from_this());
}

void Reply::Abort() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || gone_) return;
    ended_ = aborted_ = true;
  }
  ready_.Add(shared_from_this());
}

bool Reply::Full() {
  const std::lock_guard lock(mutex_);
  waits_for_room_ = unsent_ >= stream_bytes_ && !gone_;
  return waits_for_room_;
}

bool Reply::HungUp() const {
  const std::lock_guard lock(mutex_);
  return hung_up_;
}

void Reply::Listen(std::weak_ptr<ReplyListener> listener) {
  bool hung_up = false;
  {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
    hung_up = hung_up_;
  }
  if (hung_up) NotifyListener();
}

Reply::Piece Reply::Take() {
  const std::lock_guard lock(mutex_);
  Piece piece;
  piece.head = std::exchange(head_, std::nullopt);
  piece.stream = stream_;
  piece.bytes = std::exchange(buffer_, {});
  piece.last = ended_;
  piece.aborted = aborted_;
  return piece;
}

void Reply::Sent(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (!stream_) return;
    unsent_ -= std::min(unsent_, bytes);
    if (!waits_for_room_ || unsent_ > stream_bytes_ / 2) return;
    waits_for_room_ = false;
  }
  NotifyListener();
}

void Reply::HangUp(bool dead) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (gone_ || (hung_up_ && !dead)) return;
    hung_up_ = true;
    gone_ = dead;
    if (dead) buffer_ = {};
  }
  NotifyListener();
}

void Reply::NotifyListener() noexcept {
  std::shared_ptr<ReplyListener> listener;
  {
    const std::lock_guard lock(mutex_);
    listener = listener_.lock();
  }
  if (listener) listener->ReplyChanged();
}

}  // namespace lattice::server::http
