// A TrainingTask gives a Trainer its model and data. It has a recorded program for each shape of batch, and provides
// the batches.
//
//   class Copying : public TrainingTask { ... };   // train/gpt_job.h declares a complete one
//   Copying task;
//   WEFT_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(options, &task, &parameters, &run));
#ifndef WEFT_TRAIN_TASK_H_
#define WEFT_TRAIN_TASK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/graph/runner.h"
#include "weft/train/optimizer.h"

namespace weft {

// A model's loss and the update of its weights, recorded for one shape of batch. All programs of a task share the
// weights.
struct TrainingProgram {
  const Tape* tape = nullptr;
  Var rate;                   // input f32 []: the learning rate
  Var loss;                   // f32 []: the mean over the batch's targets
  Var gradient_norm, update;  // as Minimized has them
  Var correct;                // f32 []: number of correctly predicted targets; null: not counted
  Var validation_loss;        // f32 []: the loss to report for validation data; null: `loss`
};

// Records the input "learning_rate", the gradients of `loss` and the optimizer's update.
TrainingProgram RecordUpdate(Var loss, const Optimizer& optimizer, Var correct = {});

struct TrainingBatch {
  size_t program = 0;           // index of the program that this batch feeds
  std::vector<FeedPair> feeds;  // for all inputs except the rate; valid until the task makes another batch
  int64_t tokens = 0;           // tokens that are not padding, for the count of trained tokens
  int64_t targets = 0;          // targets over which the loss is the mean; at least 1
};

class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  virtual absl::Span<const TrainingProgram> programs() const = 0;
  // Returns a fingerprint of the data. A run can be resumed only with data of the same fingerprint.
  virtual std::string data() const = 0;
  // Returns the training batch of step `step`, counted from 0. The batch may depend only on the seed, `step` and the
  // weights, so that a resumed run continues as if it had never stopped.
  virtual absl::StatusOr<TrainingBatch> Train(int64_t step) = 0;
  virtual int64_t validation_batches() const = 0;
  // Returns validation batch `index` for an evaluation after `step` updates.
  virtual TrainingBatch Validate(int64_t step, int64_t index) = 0;
};

}  // namespace weft

#endif  // WEFT_TRAIN_TASK_H_
