// Runner: runs one graph on one set of parameters, as often as wanted.
//
//   Runner runner(*graph, &parameters, {.threads = 2});
//   absl::StatusOr<Outputs> out = runner.Run({{tokens, batch.tokens}, {rate, 1e-3f}});
//   double loss = out->Scalar(loss_var);
#ifndef WEFT_GRAPH_RUNNER_H_
#define WEFT_GRAPH_RUNNER_H_

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
#include "weft/graph/cancellation.h"
#include "weft/graph/graph.h"
#include "weft/graph/policies/policies.h"

namespace weft {

// What an input is given for one run. Arrays are not copied: they must last until Run returns.
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

  // The tensor to read: that of the right element count and dtype if the feed gave no shape.
  absl::StatusOr<Tensor> As(const TensorType& wanted) const;

 private:
  float scalar_ = 0;
  bool is_scalar_ = false;
  Tensor tensor_;
  bool typed_ = false;  // the shape is the caller's, and must be equal
};
using FeedPair = std::pair<Var, Feed>;

// The fetched values of a run: views that the runner's next run overwrites (for a fetched parameter, any run that
// updates it), also if that one is cancelled, and that last as long as the runner.
class Outputs {
 public:
  // Ends the program if `var` was not fetched.
  Tensor operator[](Var var) const;
  double Scalar(Var var) const;  // the first element, as a double

 private:
  friend class Runner;
  uint64_t tape_id_ = 0;
  absl::Span<const std::pair<ValueId, Tensor>> tensors_;
};

struct RunnerOptions {
  int threads = 0;         // workers, the caller among them, at most 1024; 0: as many as there are cores
  bool check_nan = false;  // look for the first kernel call (in serial order) that makes a NaN; slow, and serial
  const Policy* policy = &kCriticalPath;  // which ready task comes next: none changes any bit (graph/policies/)
  bool timed = false;                     // take the time of every tile, but in runs with check_nan
};

// When a tile of a kernel call ran, in nanoseconds since the run began, and where.
struct TileTime {
  int64_t begin = 0, end = 0;
  int worker = 0;
};

class Runner {
 public:
  // Creates the parameters that are missing. What goes wrong, every Run returns.
  Runner(Graph graph, Parameters* parameters, RunnerOptions options = {});
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // What random ops draw depends on the parameters' seed and step, which counts the runs that updated them: without an
  // update between, two runs draw the same. Every input of the graph must be fed once; inputs that the graph doesn't
  // need may be. The tape must still be there: Vars belong to it. Checks types and the bounds that were declared,
  // naming input and position, before anything is run.
  // Cancelled or DeadlineExceeded if `options` stopped it, which changed no parameter; FailedPrecondition while another
  // thread runs on the same parameters, or saves or loads them.
  absl::StatusOr<Outputs> Run(absl::Span<const FeedPair> feeds, const RunOptions& options = {});
  absl::StatusOr<Outputs> Run(std::initializer_list<FeedPair> feeds, const RunOptions& options = {}) {
    return Run(absl::MakeConstSpan(feeds.begin(), feeds.size()), options);
  }

  // Of the last run with RunnerOptions::timed: one for each tile of the compiled graph, in its order.
  absl::Span<const TileTime> tile_times() const;
  const absl::Status& status() const;
  int workers_entered() const;  // into the last run, with the caller; 1 if there was nothing to share, 0 before any
  std::optional<uint64_t> steals() const;  // of the last run; none where nobody steals (graph/executor.h)
  // After a run with check_nan: the input or parameter that has a NaN, else "exp f32[2,3] at mlp" of the first call
  // whose output has one and whose inputs have none, else "".
  const std::string& first_nan() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft

#endif  // WEFT_GRAPH_RUNNER_H_
