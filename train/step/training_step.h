// A TrainingStep runs training steps: it adds the gradients of M micro-batches, and updates the weights once.
//
//   const StepOptions options = {.micro_batches = 4};
//   WEFT_ASSIGN_OR_RETURN(auto step, TrainingStep::Plan(task.programs(), optimizer, options));
//   WEFT_RETURN_IF_ERROR(step->Allocate(&parameters));
//   const auto next = [&](MicroBatch micro_batch) { return task.Train(/*step=*/0, micro_batch); };
//   WEFT_ASSIGN_OR_RETURN(const StepResult result, step->Run(/*step=*/0, /*rate=*/1e-3, next));
//
// With one micro-batch, a step is one graph: loss, gradients and update. With more, each micro-batch is a graph that
// adds the gradients of its summed loss to a buffer. Another graph divides the sum by the step's number of targets and
// updates the weights.
//
// The sum is a fixed binary tree over the micro-batches: neighbours first, then neighbouring pairs, and so on. A
// micro-batch or pair without a neighbour moves up unchanged. So the order of additions depends on M and nothing else.
#ifndef WEFT_TRAIN_STEP_TRAINING_STEP_H_
#define WEFT_TRAIN_STEP_TRAINING_STEP_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/program.h"
#include "weft/core/tape.h"
#include "weft/distributed/weight_gathers.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"
#include "weft/train/optimize/optimizer.h"
#include "weft/train/step/step_options.h"
#include "weft/train/step/task.h"

namespace weft {

struct StepResult {
  double loss = 0;           // mean over the step's targets, before the update
  double gradient_norm = 0;  // before clipping
  int64_t tokens = 0;
  bool updated = false;  // false: a number was not finite, or the loss was above its limit; no weight has changed
};

// A compiled graph of a training step.
struct StepGraph {
  Graph graph;
  // Executions in each step. 0: the graph of a program, which runs for each of the program's micro-batches, or a graph
  // that most steps do not run.
  double runs = 0;
};

class TrainingStep {
 public:
  using NextBatch = absl::FunctionRef<absl::StatusOr<TrainingBatch>(MicroBatch)>;

  // Records gradients and updates on the tapes of `programs`, and compiles them. The result has allocated no memory for
  // values and parameters: it can be asked for graphs() and planned_bytes(). Run needs a call of Allocate before. The
  // tapes must outlive the result.
  static absl::StatusOr<std::unique_ptr<TrainingStep>> Plan(absl::Span<const TrainingProgram> programs,
                                                            const Optimizer& optimizer, const StepOptions& options);
  // Creates the parameters and allocates the memory of a planned step. `parameters` must outlive the step.
  absl::Status Allocate(Parameters* parameters);
  virtual ~TrainingStep() = default;

  // Runs step `step`, counted from 0, with M = options.micro_batches. Calls `next` for each micro-batch in order, after
  // the previous micro-batch has run. With StepOptions::skip_deviations, no weight changes if the mean loss of the step
  // exceeds `loss_limit`. Dropout depends on Parameters::step(), which is step · M + i during micro-batch i, and (step
  // + 1) · M afterwards.
  //
  // Returns the error of `next`, or of a batch that does not fit the program, such as an unknown token. With several
  // ranks, only the rank with the error returns it, after the step has run without the micro-batch. So the ranks must
  // then exchange their statuses, and all must stop if any of them failed.
  virtual absl::StatusOr<StepResult> Run(int64_t step, double rate, NextBatch next,
                                         double loss_limit = std::numeric_limits<double>::infinity()) = 0;
  // Runs the losses and gradients of step `step` again, on one thread, without an update. Returns the first op that
  // makes a NaN, or "" if none is found. If weights are divided, runs nothing and returns "".
  virtual std::string FirstNan(int64_t step, NextBatch next) = 0;
  // Returns the planned bytes of a step beside the parameters: the values of all its graphs, and sums of gradients.
  uint64_t planned_bytes() const { return planned_bytes_; }
  // Returns the bytes that Allocate allocates: planned_bytes(), and the weights and other state.
  uint64_t allocated_bytes() const;
  // Returns the graphs: first that of each program, then those on weights and sums of gradients.
  absl::Span<const StepGraph> graphs() const { return graphs_; }
  // Returns the times of the last execution of graphs()[graph], like Runner::tile_times. The result is empty without
  // StepOptions::timed, or if the graph never ran.
  absl::Span<const TileTime> tile_times(size_t graph) const;
  // Returns the number of threads of a step. If StepOptions::threads is 0, it is what the graphs are worth
  // (graph/compile/speedup.h), at most one thread for each core.
  int threads() const { return threads_; }
  // Returns the sums of gradients, which Allocate creates.
  absl::Span<const ParameterSpec> buffers() const { return buffers_; }
  // Returns the weights that the ranks divide among themselves (Sharding::kWeights). Allocate creates this rank's
  // pieces.
  absl::Span<const DividedWeight> divided() const { return divided_; }

 protected:
  explicit TrainingStep(const StepOptions& options)
      : options_(options), threads_(std::max(1, static_cast<int>(options.threads))) {}

  // Computes `values` once on one thread. Returns the first op that makes a NaN, or "" if none is found.
  std::string FirstNanOf(const Tape& tape, const VarList& values, absl::Span<const FeedPair> feeds) const;
  // Compiles `tape` with the precision and the memory budget of the options, and appends the graph to graphs(). Returns
  // its index there.
  absl::StatusOr<size_t> AddGraph(const Tape& tape, CompileOptions compile, double runs);
  Runner& runner(size_t graph) { return *runners_[graph]; }  // of an element of graphs(), after Allocate

  StepOptions options_;
  Parameters* parameters_ = nullptr;  // null before Allocate
  std::vector<ParameterSpec> buffers_;
  std::vector<DividedWeight> divided_;
  uint64_t planned_bytes_ = 0;

 private:
  // Plans a step of several micro-batches (train/step/accumulated_step.cc).
  static absl::StatusOr<std::unique_ptr<TrainingStep>> PlanAccumulated(absl::Span<const TrainingProgram> programs,
                                                                       const Optimizer& optimizer,
                                                                       const StepOptions& options);

  int threads_;
  std::vector<StepGraph> graphs_;
  std::vector<std::unique_ptr<Runner>> runners_;  // of each graph; empty before Allocate
};

}  // namespace weft

#endif  // WEFT_TRAIN_STEP_TRAINING_STEP_H_
