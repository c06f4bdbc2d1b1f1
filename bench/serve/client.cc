// A minimal HTTP client that records when the tokens of a stream arrive.
#include "serve/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>

#include "base/error.h"

namespace lattice::bench {
namespace {

using Clock = std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(int port) : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    open_ = ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool Send(const std::string& method, const std::string& path, const std::string& body) const {
    const std::string request = StrCat(method, " ", path,
                                       " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                       "Content-Type: application/json\r\nContent-Length: ",
                                       body.size(), "\r\n\r\n", body);
    return open_ && ::send(descriptor_, request.data(), request.size(), MSG_NOSIGNAL) ==
                        static_cast<ssize_t>(request.size());
  }
  // Reads to the end of the stream. Calls `arrived` after each piece, with all text so far.
  std::string ReadAll(const std::function<void(const std::string&)>& arrived) const {
    std::string text;
    char bytes[4096];
    for (ssize_t count; (count = ::recv(descriptor_, bytes, sizeof(bytes), 0)) > 0;) {
      text.append(bytes, static_cast<size_t>(count));
      arrived(text);
    }
    return text;
  }

 private:
  int descriptor_;
  bool open_ = false;
};

int StatusOf(const std::string& answer) { return answer.size() > 12 ? std::atoi(answer.c_str() + 9) : 0; }

}  // namespace

StreamTimes RunStream(int port, const std::string& body) {
  StreamTimes times;
  const Clock::time_point start = Clock::now();
  const auto since = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const Socket socket(port);
  if (!socket.Send("POST", "/v1/completions", body)) return times;
  size_t seen = 0;
  double last = 0;
  const std::string text = socket.ReadAll([&](const std::string& so_far) {
    if (times.answered == 0) times.answered = since();
    for (size_t at; (at = so_far.find("data: {", seen)) != std::string::npos; seen = at + 1) {
      const double now = since();
      if (times.first == 0) {
        times.first = now;
      } else {
        times.gaps.push_back(now - last);
      }
      last = now;
    }
  });
  times.status = StatusOf(text);
  if (times.status == 200 && text.find("data: [DONE]") == std::string::npos) times.status = 0;
  return times;
}

std::string Ask(int port, const std::string& method, const std::string& path, const std::string& body) {
  const Socket socket(port);
  if (!socket.Send(method, path, body)) return "";
  const std::string text = socket.ReadAll([](const std::string&) {});
  const size_t end = text.find("\r\n\r\n");
  return StatusOf(text) / 100 == 2 && end != std::string::npos ? text.substr(end + 4) : "";
}

}  // namespace lattice::bench
