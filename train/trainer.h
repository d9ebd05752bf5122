// A Trainer runs the training loop on a TrainingTask, and keeps the run's folder: metrics, checkpoints and weights.
//
//   const TrainerOptions options = {.learning_rate = MakeRateSchedule(*FindRateSchedule("cosine"), {.peak = 1e-3})};
//   WEFT_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(options, &task, &parameters, &run));
//   if (resume) WEFT_RETURN_IF_ERROR(trainer->Resume().status());
//   WEFT_RETURN_IF_ERROR(trainer->Train(&progress));
//
// A resumed run ends with the same weights as an uninterrupted one, if binary and kind of CPU are the same. The reason:
// batches and dropout depend only on the seed, the step and, with scheduled sampling, the weights.
#ifndef WEFT_TRAIN_TRAINER_H_
#define WEFT_TRAIN_TRAINER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/parameters.h"
#include "weft/graph/compile.h"
#include "weft/graph/runner.h"
#include "weft/train/learning_rate.h"
#include "weft/train/metrics.h"
#include "weft/train/progress.h"
#include "weft/train/run_directory.h"
#include "weft/train/task.h"

namespace weft {

struct TrainerOptions {
  int64_t steps = 2000;
  RateSchedule learning_rate;      // must be set
  int64_t eval_every = 500;        // steps between evaluations; 0: none
  int64_t checkpoint_every = 500;  // steps between checkpoints; 0: only at the end and when interrupted
  int64_t threads = 0;             // 0: one for each core
  std::string precision = "f32";   // element type for training and evaluation: "f32" or "bf16"
  uint64_t memory_budget = 0;      // maximum bytes for the values of a training step; 0: no maximum
};

class Trainer {
 public:
  // Compiles the programs of `task` and creates the parameters. `task`, `parameters` and `run` must outlive the
  // trainer.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const TrainerOptions& options, TrainingTask* task,
                                                         Parameters* parameters, const RunDirectory* run);
  // Loads the newest readable checkpoint. Returns false if the run has neither checkpoints nor weights. Warns on stderr
  // about unreadable checkpoints, and if another build of Weft or another kind of CPU wrote the checkpoint. If none is
  // readable, returns the error of the newest. Returns FailedPrecondition if a checkpoint has other data or another
  // seed, or if the run has weights, which training would replace, but no checkpoint.
  absl::StatusOr<bool> Resume();
  // Trains until step `options.steps` and saves. On Ctrl-C, SIGTERM or SIGHUP, finishes the step, saves and returns
  // Cancelled. If a loss, a gradient norm or a weight is not finite, returns Aborted without saving. The message names
  // the op that caused this, if the op is found.
  absl::Status Train(Progress* progress);

  int64_t step() const { return step_; }  // the number of updates so far

 private:
  // The runners of one program. The runner for validation is made at its first use.
  struct Graphs {
    std::unique_ptr<Runner> train, evaluate;
  };

  explicit Trainer(const TrainerOptions& options) : options_(options) {}
  const TrainingProgram& Program(const TrainingBatch& batch) const { return task_->programs()[batch.program]; }
  absl::StatusOr<Graph> Compiled(const TrainingProgram& program, CompileOptions options) const;
  absl::StatusOr<Runner*> Evaluator(size_t program);
  absl::StatusOr<Metrics::Training> TrainStep();
  absl::StatusOr<Metrics::Validation> Evaluate();
  absl::Status Report(MetricsFile* file, Metrics metrics, Progress* progress) const;
  absl::Status Save();
  absl::Status CheckWeights() const;
  absl::Status ExplainNan(const TrainingBatch& batch, double loss, double gradient_norm);
  absl::Status Stopped(const std::string& why) const;

  TrainerOptions options_;
  TrainingTask* task_ = nullptr;
  Parameters* parameters_ = nullptr;
  const RunDirectory* run_ = nullptr;
  std::vector<Graphs> graphs_;  // of each program
  int64_t step_ = 0;
  int64_t tokens_ = 0;       // trained on
  int64_t saved_step_ = -1;  // step of the newest checkpoint that this trainer wrote or loaded
  bool resumed_ = false;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_TRAINER_H_
