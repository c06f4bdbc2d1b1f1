#include "server/http_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"

namespace lattice::server {
namespace {

// Connections that wait to be accepted while the others are.
constexpr int kBacklog = 1024;

constexpr size_t kRequestsPerConnection = 10000;

// The work that this thread does is to be refused.
thread_local bool refusing = false;

// Threads started when they are needed, up to a number; what comes beyond is refused at once.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(int64_t most) : most_(static_cast<size_t>(most)) {}

  void enqueue(std::function<void()> work) override {
    {
      const std::lock_guard lock(mutex_);
      if (idle_ > waiting_.size() || threads_.size() < most_) {
        waiting_.push_back(std::move(work));
        if (idle_ < waiting_.size()) threads_.emplace_back([this] { Loop(); });
        changed_.notify_one();
        return;
      }
    }
    refusing = true;
    work();
    refusing = false;
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [&] { return !waiting_.empty() || stop_; });
      --idle_;
      if (waiting_.empty()) return;
      const std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  size_t idle_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

HttpServer::HttpServer(const HttpLimits& limits, Metrics& metrics)
    : limits_(limits), metrics_(metrics), stop_event_(::eventfd(0, EFD_CLOEXEC)) {
  Check(stop_event_ >= 0, "[serve] the system gave no event descriptor");
  // The library's own options would let a second server share the port, and take half of the clients.
  set_socket_options([](socket_t socket) {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  // What the library tells clients about connections that stay open.
  set_keep_alive_timeout(limits.connection.idle.count());
  set_keep_alive_max_count(kRequestsPerConnection);
  new_task_queue = [most = limits.connections] { return new ConnectionThreads(most); };
}

HttpServer::~HttpServer() { ::close(stop_event_); }

int HttpServer::Bind(const std::string& host, int port) {
  const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  Check(bound > 0, "[serve] cannot listen at ", host, " port ", port,
        "; is it taken by another program, or the address not this machine's? Pass another --port or --host");
  // The library's own backlog of 5 makes clients wait for a second when many come at once.
  ::listen(svr_sock_, kBacklog);
  return bound;
}

void HttpServer::Serve() { listen_after_bind(); }

void HttpServer::Shutdown() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_event_, &one, sizeof(one));
  stop();
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  if (refusing) {
    ++metrics_.refused_connections;
    RefuseConnection(socket);
    return false;
  }
  ++metrics_.connections;
  {
    Connection connection(socket, limits_.connection, stop_event_);
    for (size_t left = kRequestsPerConnection; left > 0 && connection.WaitForRequest(); --left) {
      bool last = left == 1;
      const bool served = process_request(connection, last || svr_sock_ == INVALID_SOCKET, last,
                                          [](httplib::Request& request) {
                                            // A body without a length is none; the library would read until
                                            // the connection ends.
                                            const bool chunked = request.has_header("Transfer-Encoding");
                                            if (!chunked && !request.has_header("Content-Length"))
                                              request.set_header("Content-Length", "0");
                                            // Answers are not compressed: a stream would wait for a full
                                            // buffer.
                                            request.headers.erase("Accept-Encoding");
                                          });
      if (!served || last) break;
    }
  }
  --metrics_.connections;
  return true;
}

}  // namespace lattice::server
