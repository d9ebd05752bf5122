// Each thread serves one connection at a time. The server has ConnectionLimits::connections threads.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <functional>
#include <semaphore>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "weft/apps/serve/server.h"

namespace weft {
namespace {

constexpr size_t kHeaderBytes = 64 << 10;  // that a request may have besides the bytes of the largest body

// Waits until a socket can be read or written. Returns false at the deadline, and soon after `stopped` returns true.
bool Await(int socket, short events, absl::Time deadline, absl::FunctionRef<bool()> stopped) {
  while (true) {
    const int64_t left = stopped() ? 0 : absl::ToInt64Milliseconds(deadline - absl::Now());
    pollfd waits = {socket, events, 0};
    const int ready = poll(&waits, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 100)));
    if (ready > 0) return true;
    if (left <= 0 || (ready < 0 && errno != EINTR)) return false;
  }
}

// One request of a connection, and its response.
class RequestStream : public httplib::Stream {
 public:
  RequestStream(socket_t socket, const ConnectionLimits& limits, absl::FunctionRef<bool()> stopped)
      : socket_(socket), limits_(limits), stopped_(stopped), deadline_(absl::Now() + limits.request) {}

  bool is_readable() const override { return Await(socket_, POLLIN, deadline_, stopped_); }
  bool is_writable() const override { return !Left() && AwaitReader(); }
  // httplib reads single bytes of headers, so bytes are taken from a buffer.
  ssize_t read(char* to, size_t size) override {
    if (next_ == end_) {
      if (bytes_ > limits_.body + kHeaderBytes || !is_readable()) return -1;
      const ssize_t got = recv(socket_, buffer_, sizeof(buffer_), 0);
      if (got <= 0) return got;
      next_ = 0;
      end_ = static_cast<size_t>(got);
      bytes_ += end_;
    }
    const size_t count = std::min(size, end_ - next_);
    std::copy_n(buffer_ + next_, count, to);
    next_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, size_t size) override {
    if (!AwaitReader()) return -1;
    return send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override { get_remote_ip_and_port(ip, port); }
  socket_t socket() const override { return socket_; }

  // Reports whether the client has closed the connection, or its sending side.
  bool Left() const {
    char byte;
    pollfd waits = {socket_, POLLIN, 0};
    if (next_ < end_ || poll(&waits, 1, 0) <= 0) return false;
    return (waits.revents & (POLLERR | POLLNVAL)) != 0 || recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }
  bool has_more() const { return next_ < end_; }

  bool closes = false;  // whether the connection ends after the response

 private:
  // Waits until the client can receive more.
  bool AwaitReader() const {
    const absl::Time begin = absl::Now();
    const bool ready = Await(socket_, POLLOUT, begin + limits_.write - waited_, stopped_);
    waited_ += absl::Now() - begin;
    return ready;
  }

  const socket_t socket_;
  const ConnectionLimits& limits_;
  const absl::FunctionRef<bool()> stopped_;
  const absl::Time deadline_;
  mutable absl::Duration waited_;  // total wait for the client to receive
  char buffer_[4096];
  size_t next_ = 0, end_ = 0, bytes_ = 0;
};

thread_local RequestStream* this_request = nullptr;

// While all threads are busy, the thread that accepts connections waits, and further clients wait in the kernel.
class BoundedPool : public httplib::ThreadPool {
 public:
  BoundedPool(int64_t threads, std::atomic<bool>* closed)
      : ThreadPool(static_cast<size_t>(threads)), free_(threads), closed_(closed) {}
  void enqueue(std::function<void()> job) override {
    free_.acquire();
    ThreadPool::enqueue([this, job = std::move(job)] {
      job();
      free_.release();
    });
  }
  void shutdown() override {  // when no more connections are accepted, and before the last one has ended
    *closed_ = true;
    ThreadPool::shutdown();
  }

 private:
  std::counting_semaphore<> free_;
  std::atomic<bool>* const closed_;
};

}  // namespace

Connections::Connections(const ConnectionLimits& limits) : limits_(limits) {
  new_task_queue = [this] { return new BoundedPool(limits_.connections, &closed_); };
  set_socket_options([](socket_t socket) {  // without httplib's SO_REUSEPORT, by which two servers share a port
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  set_payload_max_length(limits.body);
  set_tcp_nodelay(true);
  // What responses say of these limits.
  set_keep_alive_timeout(absl::ToInt64Seconds(limits.idle));
  set_keep_alive_max_count(limits.requests);
  // If a request is refused, its body may be unread. The next read would take the body for a request.
  set_post_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    const bool unread =
        request.method != "POST" && (request.has_header("Content-Length") || request.has_header("Transfer-Encoding"));
    if (response.status < 400 && !unread) return;
    response.set_header("Connection", "close");
    if (this_request != nullptr) this_request->closes = true;
  });
}

int Connections::Bind(const std::string& host, int port) {
  if (port == 0) {
    port = bind_to_any_port(host);
  } else if (!bind_to_port(host, port)) {
    port = -1;
  }
  // httplib asks the system to let 5 clients wait until they are accepted, and the system resets further clients.
  return port >= 0 && ::listen(svr_sock_, static_cast<int>(limits_.connections)) == 0 ? port : -1;
}

bool Connections::ClientLeft() { return this_request != nullptr && this_request->Left(); }

bool Connections::process_and_close_socket(socket_t socket) {
  ++open_;
  // httplib's is_running() is true until all connections have ended.
  const auto stopped = [this] { return closed_ || svr_sock_ == INVALID_SOCKET; };
  const auto await_request = [&] { return Await(socket, POLLIN, absl::Now() + limits_.idle, stopped); };
  // A request may ask for many copies of a response by ranges. Compression of a response takes longer than sending it.
  const auto simplify = [](httplib::Request& request) {
    request.ranges.clear();
    request.headers.erase("Accept-Encoding");
  };
  for (size_t left = limits_.requests; left > 0 && !stopped() && await_request(); --left) {
    RequestStream stream(socket, limits_, stopped);
    if (stream.Left()) break;
    this_request = &stream;
    bool closed = false, done = false;
    try {
      done = process_request(stream, /*close_connection=*/left == 1, closed, simplify);
    } catch (const std::exception&) {  // out of memory
      done = false;
    }
    this_request = nullptr;
    if (!done || closed || stream.has_more() || stream.closes) break;
  }
  --open_;
  // If a socket with unread bytes is closed, the system drops the response, too. So this reads what the client sends.
  shutdown(socket, SHUT_WR);
  char rest[4096];
  const absl::Time deadline = absl::Now() + absl::Milliseconds(500);
  while (absl::Now() < deadline && Await(socket, POLLIN, deadline, stopped) &&
         recv(socket, rest, sizeof(rest), 0) > 0) {
  }
  close(socket);
  return true;
}

}  // namespace weft
