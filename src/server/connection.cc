#include "server/connection.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "server/api_error.h"

namespace lattice::server {
namespace {

constexpr size_t kReadBytes = 16 << 10;
// What is read and thrown away so that an answer reaches a client that is still sending.
constexpr size_t kDrainedBytes = 256 << 10;
constexpr std::chrono::milliseconds kDrainTime{300};

// A client that takes a long answer slower than this is given up.
constexpr size_t kSlowestBytesPerSecond = 16 << 10;

thread_local Connection* current = nullptr;

int Milliseconds(std::chrono::steady_clock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

std::string WholeAnswer(const ApiError& error, const char* status) {
  const std::string body = error.Body();
  return StrCat(
      "HTTP/1.1 ", error.status(), " ", status,
      "\r\nContent-Type: application/json\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: ",
      body.size(), "\r\n\r\n", body);
}

void Address(const sockaddr_storage& address, std::string& ip, int& port) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    port = ntohs(v6.sin6_port);
  }
  ip = text;
}

// Closing with unread bytes would reset the connection and take the answer with it.
void DrainAndClose(int socket) {
  ::shutdown(socket, SHUT_WR);
  const auto deadline = std::chrono::steady_clock::now() + kDrainTime;
  char scrap[4096];
  for (size_t total = 0; total < kDrainedBytes;) {
    pollfd waiting = {socket, POLLIN, 0};
    if (::poll(&waiting, 1, Milliseconds(deadline)) <= 0) break;
    const ssize_t count = ::recv(socket, scrap, sizeof(scrap), MSG_DONTWAIT);
    if (count <= 0) break;
    total += static_cast<size_t>(count);
  }
  ::close(socket);
}

}  // namespace

Connection::Connection(int socket, const ConnectionLimits& limits, int stop)
    : socket_(socket), stop_(stop), limits_(limits) {
  current = this;
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Connection::~Connection() {
  current = nullptr;
  if (broken_) {
    ::close(socket_);
  } else {
    DrainAndClose(socket_);
  }
}

Connection* Connection::Current() { return current; }

bool Connection::Fill(Clock::time_point deadline, bool may_stop) {
  if (taken_ == buffer_.size()) buffer_.clear(), taken_ = 0;
  pollfd waiting[2] = {{socket_, POLLIN, 0}, {stop_, POLLIN, 0}};
  if (::poll(waiting, may_stop ? 2 : 1, Milliseconds(deadline)) <= 0) return too_slow_ = true, false;
  if (waiting[0].revents == 0) return false;
  const size_t size = buffer_.size();
  buffer_.resize(size + kReadBytes);
  const ssize_t count = ::recv(socket_, buffer_.data() + size, kReadBytes, 0);
  buffer_.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  if (count < 0) broken_ = true;
  return count > 0;
}

bool Connection::WaitForRequest() {
  if (closing_ || broken_) return false;
  if (header_ > 0) return false;
  readable_ = 0;
  if (taken_ == buffer_.size() && !Fill(Clock::now() + limits_.idle, true)) return false;
  deadline_ = Clock::now() + limits_.request;
  return HoldHeader();
}

bool Connection::HoldHeader() {
  for (;;) {
    const size_t end = buffer_.find("\r\n\r\n", taken_);
    if (end != std::string::npos && end - taken_ <= limits_.header_bytes) {
      header_ = end + 4 - taken_;
      DropRanges();
      return true;
    }
    if (end != std::string::npos || buffer_.size() - taken_ > limits_.header_bytes) {
      const ApiError error(431, StrCat("the header is longer than ", limits_.header_bytes, " bytes"));
      const std::string answer = WholeAnswer(error, "Request Header Fields Too Large");
      write(answer.data(), answer.size());
      return false;
    }
    if (!Fill(deadline_, false)) {
      if (too_slow_) {
        const std::string answer =
            WholeAnswer(ApiError(408, "the request did not come in time"), "Request Timeout");
        write(answer.data(), answer.size());
      }
      return false;
    }
  }
}

// Nothing here is served in parts, and the library's parsing of this line is recursive in its length.
void Connection::DropRanges() {
  const auto begin = buffer_.begin() + static_cast<std::ptrdiff_t>(taken_);
  std::string header(begin, begin + static_cast<std::ptrdiff_t>(header_));
  std::string kept;
  for (size_t at = 0; at < header.size();) {
    const size_t end = header.find("\r\n", at) + 2;
    constexpr const char* kRange = "range:";
    if (::strncasecmp(header.c_str() + at, kRange, std::strlen(kRange)) != 0)
      kept.append(header, at, end - at);
    at = end;
  }
  buffer_.replace(taken_, header_, kept);
  header_ = kept.size();
}

ssize_t Connection::read(char* to, size_t size) {
  size_t& left = header_ > 0 ? header_ : readable_;
  if (left == 0) return too_large_ = closing_ = true, -1;
  if (taken_ == buffer_.size() && !Fill(deadline_, false)) return closing_ = true, -1;
  const size_t count = std::min({size, left, buffer_.size() - taken_});
  std::memcpy(to, buffer_.data() + taken_, count);
  taken_ += count;
  left -= count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, size_t size) {
  const Clock::time_point deadline =
      Clock::now() + limits_.write + std::chrono::seconds(size / kSlowestBytesPerSecond);
  size_t sent = 0;
  while (sent < size && !broken_) {
    const ssize_t count = ::send(socket_, from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<size_t>(count);
      continue;
    }
    pollfd waiting = {socket_, POLLOUT, 0};
    const bool full = count < 0 && (errno == EAGAIN || errno == EINTR);
    if (!full || ::poll(&waiting, 1, Milliseconds(deadline)) <= 0) broken_ = true;
  }
  return broken_ ? -1 : static_cast<ssize_t>(sent);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0) Address(address, ip, port);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0) Address(address, ip, port);
}

void RefuseConnection(int socket) {
  const std::string answer =
      WholeAnswer(ApiError(503, "the server has no room for another connection", "", "overloaded"),
                  "Service Unavailable");
  [[maybe_unused]] const ssize_t sent =
      ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_WR);
  ::close(socket);
}

}  // namespace lattice::server
