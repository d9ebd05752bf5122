// An Evaluator measures a task's validation loss and accuracy.
//
// Several ranks share an evaluation: rank r of N measures batches r, r + N, r + 2 N, ... Every rank then adds the
// figures of all batches in their order, so the result has the same bits on any number of ranks. If the task wants
// predictions (TrainingProgram::prediction), every rank measures all batches.
//
// If ranks have divided the weights, all of them gather the weights for each batch together. A rank without a batch, or
// with an empty one, gathers them, too.
//
//   Evaluator evaluator(&task, &parameters, {.precision = kF32});
//   WEFT_RETURN_IF_ERROR(evaluator.Evaluate(step, [] { return false; }, &line).status());
#ifndef WEFT_TRAIN_LOOP_EVALUATOR_H_
#define WEFT_TRAIN_LOOP_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/distributed/weight_gathers.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"
#include "weft/train/run/metrics.h"
#include "weft/train/step/step_options.h"
#include "weft/train/step/task.h"

namespace weft {

class Evaluator {
 public:
  // Measures with the threads, the precision and the ranks of `options`. `divided`: the weights that ranks have divided
  // (TrainingStep::divided), which an evaluation gathers in its graphs. `task` and `parameters` must outlive the
  // evaluator.
  Evaluator(TrainingTask* task, Parameters* parameters, const StepOptions& options,
            absl::Span<const DividedWeight> divided = {});

  // Sets `validation` of `line` to the figures of all validation batches after `step` updates, and `ema` to those with
  // averaged weights, if there are any. Calls `stop` before each batch. If `stop` returns true, sets nothing and
  // returns false. With several ranks, `stop` is not called, because ranks would stop at different batches. Compiles a
  // program at its first use.
  absl::StatusOr<bool> Evaluate(int64_t step, absl::FunctionRef<bool()> stop, Metrics* line);

 private:
  // The figures of a validation batch. Ranks exchange the bytes of this struct, so it has no padding.
  struct MeasuredBatch {
    double targets = 0, loss = 0, correct = 0;  // number of targets; mean loss; number of correct predictions
    int64_t bytes = 0;                          // number of bytes of the targets' text; 0: not known
    int64_t counted = 0;                        // 1: `correct` was counted
  };

  absl::Status MakeRunner(size_t program);
  absl::Status MakeRunners();
  absl::StatusOr<std::optional<Metrics::Validation>> Measure(int64_t step, bool averaged,
                                                             absl::FunctionRef<bool()> stop);
  absl::StatusOr<MeasuredBatch> MeasureBatch(int64_t step, int64_t index);
  absl::StatusOr<MeasuredBatch> MeasureRound(int64_t step, int64_t index, const absl::Status& before);
  static std::vector<MeasuredBatch> GatherBatches(const Ranks& ranks, std::vector<MeasuredBatch> mine);

  TrainingTask* task_;
  Parameters* parameters_;
  StepOptions options_;
  std::vector<std::unique_ptr<Runner>> runners_;  // of each program
  // If weights are divided: their gathers, and a graph that gathers them for no batch.
  std::optional<WeightGathers> gathers_;
  Tape gathering_;
  std::unique_ptr<Runner> gatherer_;
};

// Compiles the graph with which an Evaluator measures the validation figures of a program. `gathers`: of the divided
// weights; null if there are none.
absl::StatusOr<Graph> CompileEvaluation(const TrainingProgram& program, DType precision,
                                        WeightGathers* gathers = nullptr);

// Returns all weights of the model: the averages (UpdateOptions::average_decay) and, for weights that are not trained,
// their values. The result is empty if there are no averages, or no update yet.
std::vector<NamedTensor> ModelOfAverages(const Parameters& parameters);

}  // namespace weft

#endif  // WEFT_TRAIN_LOOP_EVALUATOR_H_
