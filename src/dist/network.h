// Addresses and listening sockets.
#ifndef LATTICE_DIST_NETWORK_H_
#define LATTICE_DIST_NETWORK_H_

#include <string>

namespace lattice::dist {

// A socket that listens on one address of this host, never on all of them. Throws Error when the address is
// none of this host's, or the port is taken. `port` 0: any; returned by PortOf().
int Listen(const std::string& address, int port);
int PortOf(int socket);

// The numeric address that `name` resolves to. Throws Error when it does not.
std::string Resolve(const std::string& name);

// The own numeric address from which this host would talk to `peer` (a numeric address).
std::string OwnAddressTowards(const std::string& peer);

std::string HostName();

}  // namespace lattice::dist

#endif  // LATTICE_DIST_NETWORK_H_
