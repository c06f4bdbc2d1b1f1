// Opens listening sockets, and derives the client id from an address.
#include "server/http/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "base/error.h"

namespace lattice::server::http {
namespace {

// Connections that may wait in the kernel to be accepted.
constexpr int kBacklog = 1024;

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

int TryListen(const addrinfo& at) {
  const int socket = ::socket(at.ai_family, at.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at.ai_protocol);
  if (socket < 0) return -1;
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket, at.ai_addr, at.ai_addrlen) == 0 && ::listen(socket, kBacklog) == 0) return socket;
  ::close(socket);
  return -1;
}

}  // namespace

BoundSocket ListenAt(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), StrCat(port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> held(error == 0 ? found : nullptr, ::freeaddrinfo);
  for (const addrinfo* at = held.get(); at != nullptr; at = at->ai_next) {
    const int socket = TryListen(*at);
    if (socket >= 0) return {socket, PortOf(socket)};
  }
  Fail("[serve] cannot listen at ", host, " port ", port,
       "; is it taken by another program, or the address not this machine's? Pass another --port or --host");
}

ClientId ClientOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
  if (address.ss_family != AF_INET6) return 0;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  ClientId client = 0;
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6);
  for (int i = mapped ? 12 : 0; i < (mapped ? 16 : 8); ++i) client = (client << 8) | v6.s6_addr[i];
  return client;
}

}  // namespace lattice::server::http
