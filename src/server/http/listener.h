// Opens listening sockets and identifies the clients that connect.
#ifndef LATTICE_SERVER_HTTP_LISTENER_H_
#define LATTICE_SERVER_HTTP_LISTENER_H_

#include <sys/socket.h>

#include <string>

#include "server/http/service.h"

namespace lattice::server::http {

struct BoundSocket {
  int socket = -1;
  int port = 0;
};
// A non-blocking socket that listens at the address. Throws Error when the address cannot be bound.
BoundSocket ListenAt(const std::string& host, int port);

ClientId ClientOf(const sockaddr_storage& address);

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_LISTENER_H_
