// A Server answers HTTP requests with models, in OpenAI's form where OpenAI has one.
//
//   WEFT_ASSIGN_OR_RETURN(const auto server, Server::Start(std::move(models), {.port = 8080}));
//   ...             // threads of the server answer requests
//   server->Stop();
//
// GET  /                       a page for a browser
// GET  /health, /metrics       {"status":"ok"}; counts in the text form of Prometheus
// GET  /v1/models              the models
// POST /v1/completions, /v1/chat/completions, /v1/embeddings    as OpenAI's
// POST /v1/classify            {"model", "input"}: the labels of each text with their scores
// POST /translate              {"model", "text", "beam"}: the translation of each line
// POST /attention              {"model", "text", "target"}: attention weights, in the JSON of weft attention
//
// The same request gets the same tokens whatever other requests there are, and on any number of threads.
#ifndef WEFT_APPS_SERVE_SERVER_H_
#define WEFT_APPS_SERVE_SERVER_H_

#include <httplib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "weft/apps/serve/engine.h"

namespace weft {

struct ConnectionLimits {
  int64_t connections = 256;                   // open at once; a further client waits
  uint64_t body = 1 << 20;                     // bytes of a request's body
  absl::Duration request = absl::Seconds(10);  // from the first to the last byte of a request
  absl::Duration idle = absl::Seconds(10);     // between two requests of a client
  absl::Duration write = absl::Seconds(60);    // total time that the server waits for a client to read one response
  size_t requests = 1000;                      // of one connection
};

// A Connections is a server of cpp-httplib. It limits the number of connections, and the time and the bytes of a
// request.
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

struct ServerOptions {
  std::string host = "127.0.0.1";
  int64_t port = 8080;  // 0: any free port
  // Key of the header "Authorization: Bearer KEY". If it is empty, the server needs no key. It then refuses requests
  // whose Origin is another site, or whose Host is neither an address nor a name of its machine.
  std::string api_key;
  int64_t max_tokens = 4096;  // maximum number of tokens of a generated text
  int64_t queue = 256;        // maximum number of texts and jobs that wait
  ConnectionLimits limits = {};
};

inline constexpr char kJsonType[] = "application/json";
// The limits of the buckets that count the seconds from a request to its first token.
inline constexpr double kFirstTokenSeconds[] = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30};

class Server {
 public:
  // Listens. Returns InvalidArgument if two models have one name, and the system's error if the port can't be had.
  static absl::StatusOr<std::unique_ptr<Server>> Start(std::vector<std::unique_ptr<ServedModel>> models,
                                                       const ServerOptions& options);
  ~Server() { Stop(); }

  int port() const { return port_; }
  bool ended() const { return http_.closed(); }  // whether it accepts no more connections
  void Stop();                                   // ends all connections and texts, and waits until they have ended

 private:
  using Json = nlohmann::ordered_json;
  // An Answerer returns the answer to `request`, the JSON object of a request's body. If it returns null, it has set
  // `response` itself. `model` does the route's task.
  using Answerer = absl::StatusOr<Json> (Server::*)(const Json& request, ServedModel* model,
                                                    httplib::Response* response);

  Server(std::vector<std::unique_ptr<ServedModel>> models, const ServerOptions& options);
  void Route(const std::string& path, const char* task, Answerer answerer);
  void Get(const httplib::Request& request, httplib::Response* response);
  absl::Status Allows(const httplib::Request& request) const;
  absl::StatusOr<ServedModel*> ModelOf(const Json& request, const char* task) const;
  template <bool kChat>
  absl::StatusOr<Json> Generate(const Json& request, ServedModel* model, httplib::Response* response);
  absl::StatusOr<Json> Embed(const Json& request, ServedModel* model, httplib::Response* response);
  absl::StatusOr<Json> Classify(const Json& request, ServedModel* model, httplib::Response* response);
  absl::StatusOr<Json> Translate(const Json& request, ServedModel* model, httplib::Response* response);
  absl::StatusOr<Json> Attention(const Json& request, ServedModel* model, httplib::Response* response);
  Json ModelJson(const ServedModel& model) const;
  std::string Metrics();
  void CountFirstToken(absl::Duration wait);

  const std::vector<std::unique_ptr<ServedModel>> models_;
  const ServerOptions options_;
  const absl::Time started_;
  Engine engine_;
  std::set<std::string> routes_;  // of POST
  std::mutex attention_mutex_;    // one request for attention at a time, beside the engine
  Connections http_;
  int port_ = 0;
  std::atomic<int64_t> ids_ = 0;  // number of answers so far
  std::thread listens_;
  std::mutex mutex_;                                         // guards the members below
  std::map<std::pair<std::string, int>, int64_t> requests_;  // by path and status
  std::vector<int64_t> first_tokens_;                        // by kFirstTokenSeconds, and one more for longer times
  double first_token_sum_ = 0;                               // in seconds
};

}  // namespace weft

#endif  // WEFT_APPS_SERVE_SERVER_H_
