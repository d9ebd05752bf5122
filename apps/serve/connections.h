// A Connections is a server of cpp-httplib. It limits the number of connections, and the time and the bytes of a
// request.
#ifndef WEFT_APPS_SERVE_CONNECTIONS_H_
#define WEFT_APPS_SERVE_CONNECTIONS_H_

#include <httplib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace weft {

struct ConnectionLimits {
  int64_t connections = 256;                   // open at once; a further client waits
  int64_t body = 1 << 20;                      // bytes of a request's body
  absl::Duration request = absl::Seconds(10);  // from the first to the last byte of a request
  absl::Duration idle = absl::Seconds(10);     // between two requests of a client
  absl::Duration write = absl::Seconds(60);    // total time that the server waits for a client to read one response
  size_t requests = 1000;                      // of one connection
};

class Connections : public httplib::Server {
 public:
  explicit Connections(const ConnectionLimits& limits);

  // Listens at a port, or at any free one if `port` is 0. Returns the port, or -1 if it can't be had.
  int Bind(const std::string& host, int port);

  // Reports whether the client of this thread's connection has left.
  static bool ClientLeft();
  size_t open() const { return open_; }
  bool closed() const { return closed_; }  // whether no more connections are accepted, by stop() or for an error

 private:
  bool process_and_close_socket(socket_t socket) override;

  const ConnectionLimits limits_;
  std::atomic<size_t> open_ = 0;
  std::atomic<bool> closed_ = false;
};

}  // namespace weft

#endif  // WEFT_APPS_SERVE_CONNECTIONS_H_
