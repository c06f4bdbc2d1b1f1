// Non-blocking sockets with poll, and OpenSSL on top of them where it was found when this was built. Debian's
// hiredis (0.14) has no TLS of its own.
#include "server/store/redis_stream.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#if LATTICE_HAS_OPENSSL
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif

#include "server/store/state_store.h"

namespace lattice::server::store {
#if LATTICE_HAS_OPENSSL
// Send and Receive have the contract of send(2) and recv(2) on a non-blocking socket; EAGAIN: wait for `wants`.
struct RedisStream::Tls {
  ~Tls() {
    if (ssl != nullptr) ::SSL_free(ssl);
    if (context != nullptr) ::SSL_CTX_free(context);
  }
  // Sets errno by the result of a call.
  ssize_t Failed(int result) {
    const int reason = ::SSL_get_error(ssl, result);
    wants = reason == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
    errno = reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
  }
  ssize_t Send(std::string_view bytes) {
    size_t sent = 0;
    const int done = ::SSL_write_ex(ssl, bytes.data(), bytes.size(), &sent);
    return done == 1 ? static_cast<ssize_t>(sent) : Failed(done);
  }
  ssize_t Receive(std::span<char> into) {
    size_t got = 0;
    const int done = ::SSL_read_ex(ssl, into.data(), into.size(), &got);
    return done == 1 ? static_cast<ssize_t>(got) : Failed(done);
  }

  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
  short wants = POLLIN;
};
#else
struct RedisStream::Tls {
  ssize_t Send(std::string_view) { return -1; }
  ssize_t Receive(std::span<char>) { return -1; }
  short wants = POLLIN;
};
#endif

RedisStream::RedisStream(const RedisAddress& address, Deadline deadline) {
  try {
    Connect(address, deadline);
    if (address.tls) StartTls(address, deadline);
  } catch (...) {
    if (socket_ >= 0) ::close(socket_);
    throw;
  }
}

RedisStream::~RedisStream() {
  tls_.reset();
  if (socket_ >= 0) ::close(socket_);
}

void RedisStream::Wait(short events, Deadline deadline) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  pollfd waiting = {socket_, events, 0};
  if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0)
    ThrowUnavailable("no answer in time");
}

void RedisStream::Connect(const RedisAddress& address, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found) != 0)
    ThrowUnavailable("there is no host " + address.host);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  int reason = ECONNREFUSED;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    socket_ = ::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (socket_ < 0) continue;
    socklen_t size = sizeof(reason);
    if (::connect(socket_, at->ai_addr, at->ai_addrlen) == 0) {
      reason = 0;
    } else if (errno != EINPROGRESS) {
      reason = errno;
    } else {
      Wait(POLLOUT, deadline);
      ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &reason, &size);
    }
    if (reason == 0) {
      const int on = 1;
      ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return;
    }
    ::close(std::exchange(socket_, -1));
  }
  ThrowUnavailable(StrCat(address.host, ":", address.port, ": ", SystemReason(reason)));
}

void RedisStream::Send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = tls_ ? tls_->Send(bytes) : ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      Wait(tls_ ? tls_->wants : POLLOUT, deadline);
    } else {
      ThrowUnavailable("the connection ended: " + SystemReason(errno));
    }
  }
}

size_t RedisStream::Receive(std::span<char> into, Deadline deadline) {
  for (;;) {
    const ssize_t got = tls_ ? tls_->Receive(into) : ::recv(socket_, into.data(), into.size(), 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) ThrowUnavailable("the connection ended");
    if (errno != EAGAIN && errno != EINTR) ThrowUnavailable("the connection ended: " + SystemReason(errno));
    Wait(tls_ ? tls_->wants : POLLIN, deadline);
  }
}

#if LATTICE_HAS_OPENSSL
void RedisStream::StartTls(const RedisAddress& address, Deadline deadline) {
  tls_ = std::make_unique<Tls>();
  tls_->context = ::SSL_CTX_new(::TLS_client_method());
  if (tls_->context == nullptr) ThrowUnavailable("TLS cannot be used");
  ::SSL_CTX_set_verify(tls_->context, SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_min_proto_version(tls_->context, TLS1_2_VERSION);
  const bool trusted = address.ca_file.empty() ? ::SSL_CTX_set_default_verify_paths(tls_->context) == 1
                                               : ::SSL_CTX_load_verify_locations(
                                                     tls_->context, address.ca_file.c_str(), nullptr) == 1;
  if (!trusted) ThrowUnavailable("the certificates to trust cannot be read: " + address.ca_file);
  tls_->ssl = ::SSL_new(tls_->context);
  ::SSL_set_tlsext_host_name(tls_->ssl, address.host.c_str());
  if (::SSL_set1_host(tls_->ssl, address.host.c_str()) != 1 || ::SSL_set_fd(tls_->ssl, socket_) != 1)
    ThrowUnavailable("TLS cannot be used");
  for (int done; (done = ::SSL_connect(tls_->ssl)) != 1;) {
    tls_->Failed(done);
    if (errno == EAGAIN) {
      Wait(tls_->wants, deadline);
      continue;
    }
    const long verified = ::SSL_get_verify_result(tls_->ssl);
    ThrowUnavailable(verified == X509_V_OK
                         ? "the other side does not speak TLS"
                         : StrCat("the certificate of ", address.host,
                                  " is not trusted: ", ::X509_verify_cert_error_string(verified)));
  }
}
#else
void RedisStream::StartTls(const RedisAddress&, Deadline) {
  ThrowUnavailable(
      "this program was built without OpenSSL, so it has no rediss://; install libssl-dev and build again, "
      "or "
      "use redis://");
}
#endif

}  // namespace lattice::server::store
