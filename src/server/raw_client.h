// A raw socket client for tests: it sends exactly the bytes that a test gives it.
#ifndef LATTICE_SERVER_RAW_CLIENT_H_
#define LATTICE_SERVER_RAW_CLIENT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace lattice::server {

class RawClient {
 public:
  // `buffer`: size of the socket's receive buffer; 0: the system's choice. `number`: the client's address is
  // 127.0.0.<number>.
  explicit RawClient(int port, int buffer = 0, int number = 1) : RawClient() {
    if (buffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    const sockaddr_in own = Address(number, 0);
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) Close();
    Connect(port);
  }
  // A socket that is not connected yet.
  RawClient() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {}
  bool Connect(int port) {
    const sockaddr_in address = Address(1, port);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return true;
    Close();
    return false;
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void Close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  // No more bytes will be sent.
  void EndSending() { ::shutdown(socket_, SHUT_WR); }

  int socket() const { return socket_; }

  bool Send(const std::string& bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  bool SendPost(const std::string& path, const std::string& body) {
    return Send("POST " + path +
                " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  // Reads until `wanted` has occurred, the other side has closed, or nothing has come for `milliseconds`.
  // Returns everything received so far.
  std::string ReadUntil(const std::string& wanted, int milliseconds = 5000) {
    while (text_.find(wanted) == std::string::npos) {
      pollfd waiting = {socket_, POLLIN, 0};
      if (::poll(&waiting, 1, milliseconds) <= 0) break;
      char bytes[4096];
      const ssize_t count = ::recv(socket_, bytes, sizeof(bytes), 0);
      if (count <= 0) {
        closed_ = true;
        break;
      }
      text_.append(bytes, static_cast<size_t>(count));
    }
    return text_;
  }
  std::string ReadAll(int milliseconds = 5000) { return ReadUntil(std::string("\0never", 6), milliseconds); }
  bool closed() const { return closed_; }

 private:
  static sockaddr_in Address(int number, int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + static_cast<uint32_t>(number) - 1);
    return address;
  }

  int socket_;
  std::string text_;
  bool closed_ = false;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_RAW_CLIENT_H_
