// What a Trainer trains: programs, one for each shape of batch, and the batches.
//
//   class Copying : public TrainingTask { ... };   // apps/training/train_gpt.cc has a whole one
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

// What was recorded for batches of one shape: a model's loss and the update of its weights. Programs of a task have
// the same weights.
struct TrainingProgram {
  const Tape* tape = nullptr;
  Var rate;  // input f32 []: the learning rate
  Var loss;  // f32 []: the mean over the batch's targets
  Var gradient_norm, update;
  Var correct;  // f32 []: how many targets the model guesses; null: they are not counted
  Var held;     // f32 []: what is measured on validation data in place of the loss; null: the loss
};

// Records what follows a loss: the input "learning_rate", the gradients and AdamW's update.
TrainingProgram RecordUpdate(Var loss, const AdamWConfig& optimizer, Var correct = {});

struct TrainingBatch {
  size_t program = 0;           // the one that it is for
  std::vector<FeedPair> feeds;  // of every input but the rate; they last until the task is asked for another batch
  int64_t tokens = 0;           // that are not padding, for the count of what was trained on
  int64_t targets = 0;          // that the loss is the mean of: at least 1
};

class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  virtual absl::Span<const TrainingProgram> programs() const = 0;
  // A fingerprint of the data: a run goes on with the same only.
  virtual std::string data() const = 0;
  // The batch of the update after `step` others: a function of the seed and of `step`, and at most of the weights, so
  // that a resumed run goes on as if it had not been stopped.
  virtual absl::StatusOr<TrainingBatch> Train(int64_t step) = 0;
  virtual int64_t validation_batches() const = 0;
  virtual TrainingBatch Validate(int64_t step, int64_t index) = 0;  // after `step` updates
};

}  // namespace weft

#endif  // WEFT_TRAIN_TASK_H_
