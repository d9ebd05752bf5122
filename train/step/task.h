// A TrainingTask gives a Trainer its model and data. It has a program for each shape of batch, which computes the loss,
// and provides the batches.
//
//   class Copying : public TrainingTask { ... };   // docs/tutorials/train_your_own_model.md has a complete one
//   Copying task;
//   WEFT_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(options, &task, &parameters, &run));
#ifndef WEFT_TRAIN_STEP_TASK_H_
#define WEFT_TRAIN_STEP_TASK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/core/tensor.h"
#include "weft/distributed/index_range.h"
#include "weft/graph/run/runner.h"
#include "weft/train/run/metrics.h"

namespace weft {

// A model's loss, recorded for one shape of batch. All programs of a task share the weights by their names. The trainer
// records gradients and updates on the tape.
struct TrainingProgram {
  Tape* tape = nullptr;
  Var loss;             // f32 []: the mean over the batch's targets
  Var correct;          // f32 []: number of correctly predicted targets; null: not counted
  Var validation_loss;  // f32 []: the loss to report for validation data; null: `loss`
  Var prediction;       // any shape: passed to TrainingTask::Predicted in an evaluation; null: not passed
};

struct TrainingBatch {
  size_t program = 0;           // index of the program that this batch feeds
  std::vector<FeedPair> feeds;  // for all inputs that the task declared; valid until the task makes another batch
  int64_t tokens = 0;           // tokens that are not padding, for the count of trained tokens
  // Number of targets over which the loss is the mean; 0: the micro-batch is empty and is left out. A step in which all
  // micro-batches are empty is an error.
  int64_t targets = 0;
  int64_t bytes = 0;  // of the targets' text; 0: not known
};

// One of the `count` micro-batches of a training step. The trainer adds up their gradients before it updates weights.
struct MicroBatch {
  int64_t index = 0, count = 1;
};

class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  virtual absl::Span<const TrainingProgram> programs() const = 0;
  // Returns a fingerprint of the data. A run can be resumed only with data of the same fingerprint.
  virtual std::string data() const = 0;
  // Returns a micro-batch of step `step`, counted from 0. The result may depend only on the seed, `step`, `micro_batch`
  // and the weights, so that a resumed run continues as if it had never stopped.
  virtual absl::StatusOr<TrainingBatch> Train(int64_t step, MicroBatch micro_batch) = 0;
  virtual int64_t validation_batches() const = 0;
  // Returns validation batch `index` for an evaluation after `step` updates.
  virtual absl::StatusOr<TrainingBatch> Validate(int64_t step, int64_t index) = 0;
  // Returns the names of the figures that TakeFigures returns.
  virtual std::vector<std::string> figure_names() const { return {}; }
  // Receives the value of TrainingProgram::prediction for the batch that Validate returned last.
  virtual void Predicted(const Tensor& /*values*/) {}
  // Returns further figures of the validation data, from the predictions since the last call. `averaged`: the
  // predictions are those of the averaged weights.
  virtual NamedFigures TakeFigures(bool /*averaged*/) { return {}; }
  // Returns a text by which a reader sees what the model has learnt so far, or "". It depends only on the weights and
  // on options. May add caches to `parameters`, but changes no weight.
  virtual absl::StatusOr<std::string> Sample(Parameters* /*parameters*/) const { return ""; }
  // Writes the files of the model in the run's `folder` that depend on its weights, beside model.safetensors. The
  // trainer calls SaveMore whenever it has written that file.
  virtual absl::Status SaveMore(const Parameters& /*parameters*/, const std::string& /*folder*/) const {
    return absl::OkStatus();
  }
};

// Divides a batch of `rows` rows among the micro-batches of a step, and returns the rows of one. The parts follow each
// other; they differ by at most one row, and the larger parts come first.
inline IndexRange RowsOf(MicroBatch micro_batch, int64_t rows) {
  const auto [index, count] = micro_batch;
  const auto begin = [&, count = count](int64_t i) { return i * (rows / count) + std::min(i, rows % count); };
  return {begin(index), begin(index + 1)};
}
// Returns the different sizes of these parts: the larger and, if there is one, the smaller. A task has a program for
// each of them. The size of a part is element SizeIndex(micro_batch, rows).
inline std::vector<int64_t> MicroBatchSizes(int64_t rows, int64_t count) {
  if (rows % count == 0) return {rows / count};
  return {rows / count + 1, rows / count};
}
inline size_t SizeIndex(MicroBatch micro_batch, int64_t rows) {
  const int64_t larger = rows % micro_batch.count;  // number of parts that have one row more
  return larger > 0 && micro_batch.index >= larger ? 1 : 0;
}
// Returns InvalidArgument if a batch of `rows` rows can't be divided into `count` micro-batches of at least one row.
inline absl::Status CheckMicroBatches(int64_t rows, int64_t count) {
  if (count >= 1 && count <= rows) return absl::OkStatus();
  return InvalidArgument("micro-batches: ", count, " can't share a batch of ", rows, "; wanted 1 to ", rows);
}

}  // namespace weft

#endif  // WEFT_TRAIN_STEP_TASK_H_
