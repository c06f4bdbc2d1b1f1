// Sockets that wait for connections, and who is at their other end.
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
// A socket that listens at the address and does not block. Throws Error when it cannot be had.
BoundSocket ListenAt(const std::string& host, int port);

ClientId ClientOf(const sockaddr_storage& address);

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_LISTENER_H_
