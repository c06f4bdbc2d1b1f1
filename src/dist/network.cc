#include "dist/network.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/error.h"

namespace lattice::dist {
namespace {

constexpr int kBacklog = 2048;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses Lookup(const std::string& name, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &list);
  Check(error == 0, "[dist] MASTER_ADDR=", name,
        " is no address that this host can resolve: ", ::gai_strerror(error));
  return Addresses(list);
}

std::string Numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text = {};
  const int error = ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  Check(error == 0, "[dist] an address cannot be written: ", ::gai_strerror(error));
  return text.data();
}

class Socket {
 public:
  explicit Socket(int family, int type) : fd_(::socket(family, type | SOCK_CLOEXEC, 0)) {
    Check(fd_ >= 0, "[dist] no socket can be opened: ", SystemReason(errno));
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace

int Listen(const std::string& address, int port) {
  const Addresses found = Lookup(address, port);
  Socket socket(found->ai_family, SOCK_STREAM);
  const int on = 1;
  // Connections of a run that has just ended do not keep the port; a socket that listens does.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool ok =
      ::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0 && ::listen(socket.get(), kBacklog) == 0;
  const int error = errno;
  Check(ok || error != EADDRINUSE, "[dist] port ", port, " of ", address,
        " is in use; set another MASTER_PORT, or end the program that listens there");
  Check(ok || error != EADDRNOTAVAIL, "[dist] MASTER_ADDR=", address,
        " is no address of this host; it must be that of the host where rank 0 runs");
  Check(ok, "[dist] cannot listen on port ", port, " of ", address, ": ", SystemReason(error));
  return socket.Release();
}

int PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  Check(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0,
        "[dist] the socket of the store has no address: ", SystemReason(errno));
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string Resolve(const std::string& name) {
  const Addresses found = Lookup(name, 0);
  return Numeric(found->ai_addr, found->ai_addrlen);
}

std::string OwnAddressTowards(const std::string& peer) {
  // Connecting a datagram socket sends nothing; it only asks the routing table.
  const Addresses found = Lookup(peer, 9);
  const Socket socket(found->ai_family, SOCK_DGRAM);
  Check(::connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0, "[dist] no route to ", peer, ": ",
        SystemReason(errno));
  sockaddr_storage own = {};
  socklen_t size = sizeof(own);
  Check(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0,
        "[dist] no address of this host leads to ", peer, ": ", SystemReason(errno));
  return Numeric(reinterpret_cast<sockaddr*>(&own), size);
}

std::string HostName() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace lattice::dist
