// Trainer: the loop that trains a model on a task and keeps its run directory.
//
//   WEFT_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(options, &task, &parameters, &run));
//   if (resume) WEFT_RETURN_IF_ERROR(trainer->Resume().status());
//   WEFT_RETURN_IF_ERROR(trainer->Train(&progress));
//
// Batches, dropout and initial values depend on (seed, step) only, those of scheduled sampling on the weights, too, so
// that a resumed run ends with the same weights.
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
  double learning_rate = 1e-3, minimum_learning_rate = 1e-4;
  int64_t warmup_steps = 100;
  int64_t eval_every = 500;        // 0: no evaluation
  int64_t checkpoint_every = 500;  // 0: at the end and when interrupted
  int64_t log_every = 100;
  int64_t threads = 0;
  std::string precision = "f32";  // a dtype's name: CompileOptions::precision, of evaluations, too
  uint64_t memory_budget = 0;     // as in CompileOptions, of each training step
  uint64_t seed = 1;
};

class Trainer {
 public:
  // Compiles the task's programs and creates the parameters. What is pointed to must outlive the trainer.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const TrainerOptions& options, TrainingTask* task,
                                                         Parameters* parameters, const RunDirectory* run);
  // Loads the newest checkpoint that can be read; false if nothing was ever saved. Warns on stderr if another version
  // of Weft or another CPU wrote it. FailedPrecondition if it is of other data or another seed, or if there are weights
  // without a checkpoint, which training would replace.
  absl::StatusOr<bool> Resume();
  // Trains up to options.steps and saves. Cancelled, after saving, on Ctrl-C; Aborted, naming the op, when a loss, a
  // norm or a weight is not finite any more, which is not saved.
  absl::Status Train(Progress* progress);

  int64_t step() const { return step_; }  // updates made

 private:
  // A program's graphs. Those for validation are compiled when they are first wanted.
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
  WarmupCosine schedule_;
  TrainingTask* task_ = nullptr;
  Parameters* parameters_ = nullptr;
  const RunDirectory* run_ = nullptr;
  std::vector<Graphs> graphs_;  // one for each program
  int64_t step_ = 0;
  int64_t tokens_ = 0;       // trained on
  int64_t saved_step_ = -1;  // the newest checkpoint, if it was written or loaded here
  bool resumed_ = false;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_TRAINER_H_
