// The event loop: one thread that accepts connections, waits with epoll for all of them, checks their
// deadlines, and evicts idle ones when there is no room.
#include "server/http/http_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/error.h"
#include "base/memory_reserve.h"
#include "server/http/listener.h"

namespace lattice::server::http {
namespace {

// How often deadlines are checked, which is also how precise they are.
constexpr std::chrono::milliseconds kTick{200};
// The send buffer of a socket: how much of an answer the system holds for a client that does not read.
constexpr int kSystemBytes = 256 << 10;
// How often freed memory is looked for, and how long after the last work.
constexpr std::chrono::seconds kBetweenLooks{1}, kLooksAfterWork{3};

constexpr std::string_view kServerFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    "Retry-After: 1\r\nContent-Length: 124\r\n\r\n"
    R"({"error":{"message":"the server has no room for another connection","type":"server_error",)"
    R"("param":null,"code":"overloaded"}})";
static_assert(kServerFull.size() - kServerFull.find("{") == 124);

// How many connections are accepted before the events of others are handled.
constexpr int kAtOnce = 64;

int MakeEvent() { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void RefuseSocket(int socket) {
  [[maybe_unused]] const ssize_t sent =
      ::send(socket, kServerFull.data(), kServerFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_WR);
  ::close(socket);
}

int OpenSpare() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

HttpServer::HttpServer(const HttpLimits& limits, Service& service, WorkerPool& workers, ByteBudget& budget,
                       HttpCounters& counters)
    : limits_(limits),
      budget_(budget),
      event_(MakeEvent()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      ready_(event_),
      context_{limits_.connection, limits_.waiting_requests, service, workers, budget_, ready_},
      counters_(counters),
      end_at_(Clock::time_point::max().time_since_epoch().count()) {
  Check(event_ >= 0 && epoll_ >= 0, "[serve] the system gave no event descriptor");
  ended_.reserve(static_cast<size_t>(limits.connections) + kAtOnce);
}

HttpServer::~HttpServer() {
  Stop();
  Join(Clock::now());
  for (const int descriptor : {event_, epoll_, listener_, spare_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

int HttpServer::Start(const std::string& host, int port) {
  const BoundSocket bound = ListenAt(host, port);
  HoldMemoryReserve();
  listener_ = bound.socket;
  spare_ = OpenSpare();
  epoll_event waiting{};
  waiting.events = EPOLLIN;
  waiting.data.fd = event_;
  Check(::epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &waiting) == 0, "[serve] the system cannot watch events");
  Listen(true);
  try {
    thread_ = std::thread([this] { Loop(); });
  } catch (const std::system_error& error) {
    Fail("[serve] the system gives no more threads (", error.what(), "); raise the limit on processes");
  }
  return bound.port;
}

void HttpServer::Stop() {
  stopping_ = true;
  ready_.Wake();
}

void HttpServer::Join(Clock::time_point deadline) {
  end_at_ = deadline.time_since_epoch().count();
  ready_.Wake();
  if (thread_.joinable()) thread_.join();
}

void HttpServer::Listen(bool on) {
  if (on == listening_ || listener_ < 0) return;
  epoll_event waiting{};
  waiting.events = EPOLLIN;
  waiting.data.fd = listener_;
  if (::epoll_ctl(epoll_, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_, &waiting) == 0) listening_ = on;
}

template <typename Step>
void HttpServer::Guarded(Connection& connection, const Step& step) {
  bool failed = false;
  try {
    step();
  } catch (const std::exception&) {
    failed = true;
  }
  if (failed || connection.ended()) {
    ended_.push_back(connection.socket());
  } else {
    Update(connection);
  }
}

void HttpServer::Update(Connection& connection) {
  const uint32_t interest = connection.Interest();
  if (interest == connection.interest) return;
  epoll_event waiting{};
  waiting.events = interest;
  waiting.data.fd = connection.socket();
  const bool changed = ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.socket(), &waiting) == 0;
  if (changed) connection.interest = interest;
  if (!changed) ended_.push_back(connection.socket());
}

void HttpServer::RemoveEnded() {
  for (const int socket : ended_) {
    const auto found = connections_.find(socket);
    if (found == connections_.end()) continue;
    const auto client = clients_.find(found->second->client());
    if (--client->second == 0) clients_.erase(client);
    connections_.erase(found);
    --counters_.connections;
  }
  ended_.clear();
}

void HttpServer::Loop() {
  Clock::time_point last_tick = Clock::now();
  std::array<epoll_event, 256> events{};
  for (;;) {
    const bool idle = connections_.empty() && listening_ && Clock::now() - active_ > kLooksAfterWork;
    const int count =
        ::epoll_wait(epoll_, events.data(), events.size(), idle ? -1 : static_cast<int>(kTick.count()));
    bool accept = false;
    for (int i = 0; i < count; ++i) {
      const int socket = events[static_cast<size_t>(i)].data.fd;
      const uint32_t what = events[static_cast<size_t>(i)].events;
      if (socket == event_) {
        OnReplies();
      } else if (socket == listener_) {
        accept = true;
      } else if (const auto found = connections_.find(socket); found != connections_.end()) {
        Connection& connection = *found->second;
        Guarded(connection, [&] { connection.OnEvents(what); });
      }
      RemoveEnded();
    }
    // After all events: they name sockets by number, and a new connection could get the number of one that
    // has just been closed.
    if (accept && !stopping_) Accept();
    if (stopping_ || Clock::now() - last_tick >= kTick) {
      OnTick();
      RemoveEnded();
      last_tick = Clock::now();
    }
    if (!stopping_) continue;
    const bool over = Clock::now().time_since_epoch().count() >= end_at_;
    if (over) connections_.clear(), clients_.clear(), counters_.connections = 0;
    if (connections_.empty() && end_at_ != Clock::time_point::max().time_since_epoch().count()) return;
  }
}

void HttpServer::OnReplies() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_, &count, sizeof(count));
  while (const std::shared_ptr<Reply> reply = ready_.Take()) {
    if (reply->owner == nullptr) continue;
    Connection& connection = *reply->owner;
    Guarded(connection, [&] { connection.OnReply(*reply); });
    RemoveEnded();
  }
}

void HttpServer::OnTick() {
  HoldMemoryReserve();
  if (stopping_ && listener_ >= 0) {
    Listen(false);
    ::close(listener_);
    listener_ = -1;
  }
  Listen(!stopping_);
  const Clock::time_point now = Clock::now();
  for (const auto& [socket, connection] : connections_) {
    Guarded(*connection, [&, each = connection.get()] {
      if (stopping_) each->Stop();
      if (!each->ended()) each->OnTick(now);
    });
  }
  // Work for clients that have gone goes on for a while, and frees its memory behind them.
  if (!connections_.empty() || !context_.workers.Idle()) active_ = now;
  if (now < next_look_) return;
  memory_.Look();
  next_look_ = now + kBetweenLooks;
}

void HttpServer::Accept() {
  for (int i = 0; i < kAtOnce && AcceptOne(); ++i) {
  }
  RemoveEnded();
}

// False when no connection is waiting, or none can be accepted at the moment.
bool HttpServer::AcceptOne() {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  const int socket =
      ::accept4(listener_, reinterpret_cast<sockaddr*>(&address), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket >= 0) {
    AddConnection(socket, ClientOf(address));
    return true;
  }
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) OutOfDescriptors();
  return errno == EINTR || errno == ECONNABORTED;
}

void HttpServer::AddConnection(int socket, ClientId client) {
  active_ = Clock::now();
  const auto known = clients_.find(client);
  const int64_t held = known == clients_.end() ? 0 : known->second;
  const bool greedy = limits_.client_connections > 0 && held >= limits_.client_connections;
  const bool full = static_cast<int64_t>(connections_.size()) >= limits_.connections;
  if ((greedy && !EvictOne(&client)) || (!greedy && full && !EvictOne(nullptr))) {
    ++counters_.refused_connections;
    return RefuseSocket(socket);
  }
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSystemBytes, sizeof(kSystemBytes));
  std::unique_ptr<Connection> connection;
  try {
    connection = std::make_unique<Connection>(context_, socket, client);
  } catch (const std::exception&) {
    ++counters_.refused_connections;
    return RefuseSocket(socket);
  }
  epoll_event waiting{};
  waiting.events = connection->interest = connection->Interest();
  waiting.data.fd = socket;
  try {
    ++clients_[client];
    connections_.emplace(socket, std::move(connection));
  } catch (const std::exception&) {
    const auto counted = clients_.find(client);
    if (counted != clients_.end() && --counted->second <= 0) clients_.erase(counted);
    ++counters_.refused_connections;
    return;
  }
  ++counters_.connections;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &waiting) != 0) ended_.push_back(socket);
}

bool HttpServer::EvictOne(const ClientId* client) {
  const Connection* chosen = nullptr;
  // From the client with the most connections, by priority, then the oldest.
  const auto rank = [&](const Connection& each) {
    return std::tuple(clients_.find(each.client())->second, each.EvictionPriority(),
                      -each.since().time_since_epoch().count());
  };
  for (const auto& [socket, each] : connections_) {
    const bool candidate = each->EvictionPriority() > 0 && (client == nullptr || each->client() == *client);
    if (candidate && (chosen == nullptr || rank(*each) > rank(*chosen))) chosen = each.get();
  }
  if (chosen == nullptr) return false;
  ++counters_.dropped_connections;
  ended_.push_back(chosen->socket());
  RemoveEnded();
  return true;
}

void HttpServer::OutOfDescriptors() {
  if (EvictOne(nullptr)) return;
  // All connections are in use. Closing the spare descriptor makes it possible to accept the waiting
  // connection and refuse it.
  ::close(spare_);
  const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket >= 0) {
    ++counters_.refused_connections;
    RefuseSocket(socket);
  }
  spare_ = OpenSpare();
  // Stop listening until the next tick instead of spinning.
  Listen(false);
}

}  // namespace lattice::server::http
