// The state machine of one connection: read a head, read a body, answer, and linger before closing.
#include "server/http/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <variant>

namespace lattice::server::http {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// Bodies up to this size are joined with their head, so that one system call sends both.
constexpr size_t kJoinedBytes = 64 << 10;
// How much is read and discarded after the last answer: closing a socket with unread bytes would reset the
// connection, and the client would lose the answer.
constexpr size_t kDrainedBytes = 256 << 10;
constexpr std::chrono::seconds kLingerTime{1};

constexpr BadRequest kSlow = {408, "the request did not come in time"};
constexpr BadRequest kCutBody = {400, "the connection ended before the body did"};
constexpr BadRequest kBadChunk = {400, "the chunks of the body cannot be read"};
constexpr BadRequest kLargeBody = {413, "the body is longer than this server accepts"};
constexpr BadRequest kNoRoom = {503, "the server has no room for this body now; try again in a moment"};
constexpr BadRequest kNoWorker = {503, "too many requests wait to be read; try again in a moment"};
constexpr BadRequest kStopping = {503, "the server is shutting down"};
constexpr BadRequest kExpectation = {417, "the only expectation that is understood is 100-continue"};

}  // namespace

Connection::Connection(const ConnectionContext& context, int socket, ClientId client)
    : context_(context),
      socket_(socket),
      client_(client),
      since_(Clock::now()),
      progress_(since_),
      requests_left_(context.limits.requests) {}

Connection::~Connection() {
  if (reply_) {
    reply_->owner = nullptr;
    reply_->HangUp(true);
  }
  ::close(socket_);
}

void Connection::Enter(State state) {
  state_ = state;
  since_ = progress_ = Clock::now();
  since_progress_ = 0;
}

uint32_t Connection::Interest() const {
  uint32_t events = 0;
  if (!hung_up_) events |= EPOLLRDHUP;
  if (state_ != State::kAnswer) events |= EPOLLIN;
  if (sent_ < sending_.size()) events |= EPOLLOUT;
  return events;
}

int Connection::EvictionPriority() const {
  switch (state_) {
    case State::kLinger:
      return 4;
    case State::kHead:
      return input_.empty() ? 3 : 2;
    case State::kBody:
      return 1;
    case State::kAnswer:
      break;
  }
  return 0;
}

void Connection::OnEvents(uint32_t events) {
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return End();
  if ((events & EPOLLIN) != 0 && state_ != State::kAnswer) Receive();
  if ((events & EPOLLRDHUP) != 0 && state_ == State::kAnswer) {
    hung_up_ = closing_ = true;
    reply_->HangUp(false);
  }
  if ((events & EPOLLOUT) != 0) Flush();
}

void Connection::Receive() {
  static thread_local std::array<char, kReadBytes> buffer;
  const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
  if (count < 0) {
    if (errno != EAGAIN && errno != EINTR) End();
    return;
  }
  if (count == 0) {
    hung_up_ = closing_ = true;
    if (state_ == State::kBody) return Refuse(kCutBody);
    return End();
  }
  const std::string_view bytes(buffer.data(), static_cast<size_t>(count));
  progress_ = Clock::now();
  switch (state_) {
    case State::kHead:
      if (input_.empty()) since_ = progress_;
      input_ += bytes;
      return ReadHead();
    case State::kBody:
      return ReadBody(bytes);
    case State::kLinger:
      drained_ += bytes.size();
      if (drained_ > kDrainedBytes) End();
      return;
    case State::kAnswer:
      return;
  }
}

void Connection::ReadHead() {
  auto parsed = ParseHead(input_, context_.limits.head);
  if (const auto* bad = std::get_if<BadRequest>(&parsed)) return Refuse(*bad);
  auto* found = std::get_if<ParsedHead>(&parsed);
  if (found == nullptr) return;
  input_.erase(0, found->bytes);
  Open(std::move(found->head));
}

void Connection::NewReply(const RequestHead* head) {
  const bool chunked = head != nullptr && head->minor_version == 1;
  reply_ = std::make_shared<Reply>(context_.ready, context_.budget, context_.limits.stream_bytes, chunked);
  reply_->owner = this;
  head_only_ = head != nullptr && head->method == "HEAD";
  closing_ = closing_ || head == nullptr || !head->KeepAlive() || --requests_left_ <= 0;
}

void Connection::Open(RequestHead head) {
  NewReply(&head);
  const std::string* const expected = head.Field("expect");
  const bool waits = expected != nullptr && head.minor_version == 1;
  const bool understood = expected == nullptr || *expected == "100-continue";
  const bool has_body = head.HasBody();
  exchange_ = context_.service.Open({std::move(head), {}, client_}, reply_);
  if (exchange_ == nullptr) {
    closing_ = closing_ || has_body;
    return Enter(State::kAnswer);
  }
  if (!understood) return Refuse(kExpectation);
  body_.emplace(exchange_->request.head, exchange_->most_body_bytes);
  exchange_->body_bytes.emplace(context_.budget);
  state_ = State::kBody;  // without Enter: the deadline counts from the request's first byte
  if (waits && has_body && input_.empty()) {
    sending_ = "HTTP/1.1 100 Continue\r\n\r\n";
    sent_ = 0;
    last_ = false;
    Flush();
    if (ended_) return;
  }
  const std::string rest = std::exchange(input_, {});
  ReadBody(rest);
}

void Connection::ReadBody(std::string_view bytes) {
  std::string& body = exchange_->request.body;
  if (!exchange_->body_bytes->Resize(static_cast<int64_t>(body.size() + bytes.size())))
    return Refuse(kNoRoom);
  const size_t used = body_->Read(bytes, body);
  switch (body_->state()) {
    case BodyReader::State::kMore:
      return;
    case BodyReader::State::kDone:
      input_ = bytes.substr(used);
      return Dispatch();
    case BodyReader::State::kTooLarge:
      return Refuse(kLargeBody);
    case BodyReader::State::kBad:
      return Refuse(kBadChunk);
  }
}

void Connection::Dispatch() {
  std::shared_ptr<Exchange> exchange = std::move(exchange_);
  Enter(State::kAnswer);
  if (!context_.workers.Request(exchange, context_.waiting_requests))
    context_.service.Refuse(kNoWorker, *reply_);
}

void Connection::Refuse(const BadRequest& reason) {
  if (reply_ == nullptr) NewReply(nullptr);
  closing_ = true;
  context_.service.Refuse(reason, *reply_);
  exchange_.reset();
  Enter(State::kAnswer);
}

void Connection::OnReply(const Reply& reply) {
  if (&reply == reply_.get() && state_ == State::kAnswer) Flush();
}

// Moves the next piece of the reply into sending_; false when there is none.
bool Connection::TakePiece() {
  Reply::Piece piece = reply_->Take();
  if (piece.aborted) return End(), false;
  sending_.clear();
  sent_ = 0;
  if (piece.head) {
    const bool chunked = piece.stream && reply_->chunked();
    closing_ = closing_ || (piece.stream && !chunked);
    sending_ = HeadText(*piece.head, {closing_, piece.stream, chunked});
    // A large body is moved, not copied behind its head.
    std::string& body = piece.head->body;
    if (!head_only_ && body.size() <= kJoinedBytes) sending_ += body;
    if (!head_only_ && body.size() > kJoinedBytes) after_ = std::move(body);
  }
  if (!head_only_) sending_ += piece.bytes;
  last_ = piece.last;
  return !sending_.empty();
}

void Connection::Flush() {
  while (!ended_) {
    if (sent_ == sending_.size() && !after_.empty()) {
      sending_ = std::exchange(after_, {});
      sent_ = 0;
    }
    if (sent_ == sending_.size()) {
      if (last_ && state_ == State::kAnswer) return EndAnswer();
      if (state_ != State::kAnswer) return;
      // A client that takes everything there is makes progress, however little that is.
      progress_ = Clock::now();
      since_progress_ = 0;
      if (!TakePiece()) {
        if (last_ && !ended_) EndAnswer();
        return;
      }
    }
    const ssize_t count = ::send(socket_, sending_.data() + sent_, sending_.size() - sent_, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) End();
      return;
    }
    sent_ += static_cast<size_t>(count);
    since_progress_ += static_cast<size_t>(count);
    if (state_ == State::kAnswer) reply_->Sent(static_cast<size_t>(count));
    if (since_progress_ >= ConnectionLimits::kLeastProgress) {
      progress_ = Clock::now();
      since_progress_ = 0;
    }
  }
}

void Connection::EndAnswer() {
  reply_->owner = nullptr;
  reply_.reset();
  sending_ = {};
  sent_ = 0;
  last_ = false;
  if (closing_) {
    ::shutdown(socket_, SHUT_WR);
    if (hung_up_) return End();
    return Enter(State::kLinger);
  }
  Enter(State::kHead);
  if (!input_.empty()) ReadHead();
}

void Connection::OnTick(Clock::time_point now) {
  const ConnectionLimits& limits = context_.limits;
  switch (state_) {
    case State::kHead:
      if (input_.empty() && now - since_ > limits.idle) End();
      if (!input_.empty() && now - since_ > std::min(limits.head_time, limits.request)) Refuse(kSlow);
      return;
    case State::kBody:
      if (now - since_ > limits.request || now - progress_ > limits.progress) Refuse(kSlow);
      return;
    case State::kAnswer:
      if (sent_ < sending_.size() && now - progress_ > limits.progress) End();
      return;
    case State::kLinger:
      if (now - since_ > kLingerTime) End();
      return;
  }
}

void Connection::Stop() {
  closing_ = true;
  if (state_ == State::kHead) End();
  if (state_ == State::kBody) Refuse(kStopping);
}

}  // namespace lattice::server::http
