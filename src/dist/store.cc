// Opens c10d's store and gloo's connections.
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"
#include "dist/group_parts.h"
#include "dist/network.h"

namespace lattice::dist {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRetry = std::chrono::milliseconds(200);
// A collective may wait for a rank that validates or compiles; the watch finds lost ranks much earlier.
constexpr auto kCollective = std::chrono::minutes(30);

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// Whether something accepts connections there; waits at most `patience` for an answer.
bool Accepts(const std::string& address, int port, std::chrono::milliseconds patience) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* list = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) return false;
  const int socket = ::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool accepted = ::connect(socket, list->ai_addr, list->ai_addrlen) == 0;
  if (!accepted && errno == EINPROGRESS) {
    pollfd waiting = {.fd = socket, .events = POLLOUT, .revents = 0};
    int error = 0;
    socklen_t size = sizeof(error);
    accepted = ::poll(&waiting, 1, static_cast<int>(patience.count())) == 1 &&
               ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }
  ::close(socket);
  ::freeaddrinfo(list);
  return accepted;
}

void WaitUntilThere(const Place& place, const std::string& address, double seconds) {
  const auto until = Clock::now() + Milliseconds(seconds);
  while (!Accepts(address, place.port, std::chrono::milliseconds(2000))) {
    Check(
        Clock::now() < until, "[dist] rank ", place.rank, " found no store at MASTER_ADDR=", place.address,
        " MASTER_PORT=", place.port, " within ", seconds,
        " s; check that rank 0 runs there, that both variables are the same for all ranks, and the firewall");
    std::this_thread::sleep_for(kRetry);
  }
}

}  // namespace

c10::intrusive_ptr<c10d::Store> OpenStore(const Place& place, double seconds, bool server) {
  const std::string address = Resolve(place.address);
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.waitWorkers = false;
  options.timeout = Milliseconds(seconds);
  if (server) {
    options.isServer = true;
    options.masterListenFd = place.listener >= 0 ? place.listener : Listen(address, place.port);
  } else {
    WaitUntilThere(place, address, seconds);
  }
  try {
    return c10::make_intrusive<c10d::TCPStore>(address, options);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    Fail("[dist] what answers at ", place.address, ":", place.port,
         " is not the store of a training: ", what.substr(0, what.find('\n')));
  }
}

c10::intrusive_ptr<c10d::Backend> MakeGloo(const Place& place, const c10::intrusive_ptr<c10d::Store>& store,
                                           double seconds) {
  using c10d::ProcessGroupGloo;
  auto options = ProcessGroupGloo::Options::create(Milliseconds(seconds));
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(
      interface != nullptr && *interface != '\0'
          ? ProcessGroupGloo::createDeviceForInterface(interface)
          : ProcessGroupGloo::createDeviceForHostname(OwnAddressTowards(Resolve(place.address))));
  auto prefixed =
      c10::make_intrusive<c10d::PrefixStore>("lattice/gloo/" + std::to_string(place.attempt), store);
  c10::intrusive_ptr<c10d::Backend> backend =
      c10::make_intrusive<ProcessGroupGloo>(prefixed, place.rank, place.size, options);
  backend->setTimeout(kCollective);
  return backend;
}

}  // namespace lattice::dist
