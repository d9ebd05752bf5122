// A Runner runs one graph on one set of parameters, any number of times. After the first execution it allocates no
// memory.
//
//   Runner runner(*graph, &parameters, {.threads = 2});
//   absl::StatusOr<Outputs> out = runner.Run({{tokens, batch.tokens}, {rate, 1e-3f}});
//   double loss = out->Scalar(loss_var);
#ifndef WEFT_GRAPH_RUN_RUNNER_H_
#define WEFT_GRAPH_RUN_RUNNER_H_

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/cancellation.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/graph/run/transport.h"

namespace weft {

// A Feed is the value of one input in one call of Run. Arrays are not copied, so they must last until Run returns.
class Feed {
 public:
  Feed(const Tensor& tensor) : tensor_(tensor), typed_(true) {}  // NOLINT: implicit
  template <class T>
  Feed(const std::vector<T>& values) : Feed(absl::MakeConstSpan(values)) {}  // NOLINT: implicit
  template <class T>
  Feed(absl::Span<const T> values)  // NOLINT: implicit
      : tensor_{{kDTypeOf<T>, {static_cast<int64_t>(values.size())}},
                reinterpret_cast<std::byte*>(const_cast<T*>(values.data()))} {}
  Feed(float scalar) : scalar_(scalar), is_scalar_(true), tensor_{{kF32, {}}} {}  // NOLINT: implicit

  // Returns this feed as a tensor of type `wanted`. A fed tensor must have this type. Vectors, spans and scalars have
  // no shape, so only their dtype and number of elements must fit. Otherwise returns InvalidArgument.
  absl::StatusOr<Tensor> As(const TensorType& wanted) const;

 private:
  float scalar_ = 0;
  bool is_scalar_ = false;
  Tensor tensor_;
  bool typed_ = false;  // true: the caller gave a tensor, whose shape must be equal, too
};
using FeedPair = std::pair<Var, Feed>;

// Outputs are the fetched values of one execution. They are views that last as long as the runner. The runner's next
// execution overwrites them, even if it is cancelled. If another runner updates a fetched parameter, its view changes,
// too.
class Outputs {
 public:
  // Returns the value of `var`. Ends the program if `var` was not fetched.
  Tensor operator[](Var var) const;
  // Returns the first element of the value.
  double Scalar(Var var) const;

 private:
  friend class Runner;
  uint64_t tape_id_ = 0;
  absl::Span<const std::pair<ValueId, Tensor>> tensors_;
};

struct RunnerOptions {
  int threads = 0;         // number of workers, including the caller, at most 1024; 0: one for each core
  bool check_nan = false;  // true: finds the first kernel call that makes a NaN; runs serially, and slowly
  const Policy* policy = &kCriticalPath;  // which ready task runs next (graph/run/policies/); changes no bit
  // Whether to measure when every tile runs. No tile is then divided among workers. It has no effect with check_nan.
  bool timed = false;
  Transport* transport = nullptr;  // for the messages of the graph; null: the graph must have none
};

// A TileTime tells when a tile of a kernel call ran, in nanoseconds since the execution began, and on which worker. For
// a call with messages, the times are those from start to end, and `worker` is kSendLane or kReceiveLane.
struct TileTime {
  int64_t begin = 0, end = 0;
  int worker = 0;
  static constexpr int kSendLane = -1, kReceiveLane = -2;
};

class Runner {
 public:
  // Creates the parameters of the graph that `parameters` lacks. `parameters` must outlive the runner. If anything
  // fails, status() and every call of Run return the error.
  Runner(Graph graph, Parameters* parameters, RunnerOptions options = {});
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Runs the graph once and returns the fetched values.
  //
  // `feeds`: each input that the graph needs, exactly once; other inputs of the tape may be fed, too. The tape must
  // still exist, because the Vars in `feeds` belong to it. Types and declared bounds are checked before anything runs.
  //
  // Random ops depend on the parameters' seed and step. The step counts the executions that updated parameters other
  // than caches, unless Parameters::set_step sets it. So two executions without such an update between them draw the
  // same numbers.
  //
  // Errors: InvalidArgument or OutOfRange if a feed does not fit; the message names the input. Cancelled or
  // DeadlineExceeded if `options` stopped the execution; no parameter was changed then. A graph with messages ignores
  // `options`, because other ranks would wait forever for a rank that stops. FailedPrecondition while another thread
  // runs on the same parameters, or saves or loads them.
  absl::StatusOr<Outputs> Run(absl::Span<const FeedPair> feeds, const RunOptions& options = {});
  absl::StatusOr<Outputs> Run(std::initializer_list<FeedPair> feeds, const RunOptions& options = {}) {
    return Run(absl::MakeConstSpan(feeds.begin(), feeds.size()), options);
  }

  // Makes later executions read and write the parameter `other` in place of `name`, for each pair {name, other}. Both
  // are parameters of one type, and `name` is one of the graph. So one graph can add to one of several buffers. Returns
  // InvalidArgument, and changes nothing, if a parameter is missing or the types differ.
  absl::Status UseParameters(absl::Span<const std::pair<std::string, std::string>> names);

  // Returns the times of the last execution: one for each of CompiledGraph::tiles, in that order. Without
  // RunnerOptions::timed, the result is empty.
  absl::Span<const TileTime> tile_times() const;
  // Returns the error of preparing the runner, or OK.
  const absl::Status& status() const;
  // Returns how many workers took part in the last execution, including the caller; 0 before the first execution.
  int workers_entered() const;
  // Returns how often workers stole from each other in the last execution, or nullopt if the executor does not steal.
  std::optional<uint64_t> steals() const;
  // Returns, after an execution with check_nan, the first input or parameter that had a NaN before, like "input 'x'".
  // If none had, returns the first kernel call that has a NaN in an output and none in its inputs, like
  // "exp f32[2,3] at mlp". If there is no such call either, returns "".
  const std::string& first_nan() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_RUNNER_H_
