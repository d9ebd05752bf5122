// A Trainer runs the training loop on a TrainingTask, and keeps the run's folder: metrics, checkpoints and weights.
//
//   TrainerOptions options = {.steps = 2000, .optimizer = AdamW({.clip = 1.0})};
//   options.learning_rate = MakeRateSchedule(*FindRateSchedule("cosine"), {.peak = 1e-3});
//   WEFT_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(options, &task, &parameters, &run));
//   if (resume) WEFT_RETURN_IF_ERROR(trainer->Resume().status());
//   WEFT_RETURN_IF_ERROR(trainer->Train(&progress));
//
// A resumed run ends with the same weights as an uninterrupted one, if binary and kind of CPU are the same. The reason:
// batches and dropout depend only on the seed, the step, the micro-batch and, with scheduled sampling, the weights.
//
// Several ranks (TrainerOptions::ranks) may run one training, each with its own task, parameters and trainer. All ranks
// compute the same figures and take the same decisions. Rank 0 alone prints and writes files; with
// TrainerOptions::sharding, other ranks add their pieces to a checkpoint. Resume and Train wait for all ranks and
// return the same status on each. An error of one rank ends all ranks, and its message names the rank.
#ifndef WEFT_TRAIN_LOOP_TRAINER_H_
#define WEFT_TRAIN_LOOP_TRAINER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/parameters.h"
#include "weft/train/loop/evaluator.h"
#include "weft/train/loop/history.h"
#include "weft/train/loop/interrupt.h"
#include "weft/train/loop/options.h"
#include "weft/train/run/metrics.h"
#include "weft/train/run/progress.h"
#include "weft/train/run/run_directory.h"
#include "weft/train/run/run_log.h"
#include "weft/train/step/task.h"
#include "weft/train/step/training_step.h"

namespace weft {

class Trainer {
 public:
  // Records gradients and updates on the tapes of `task`, compiles the programs and creates the parameters. `task`,
  // `parameters` and `run` must outlive the trainer. Returns ResourceExhausted, and allocates nothing, if the training
  // needs more memory than `options.memory_limit`.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const TrainerOptions& options, TrainingTask* task,
                                                         Parameters* parameters, const RunDirectory* run);
  // Loads the newest readable checkpoint. Returns false if the run has neither checkpoints nor weights. Warns on stderr
  // about unreadable checkpoints, and if another build of Weft or another kind of CPU wrote the checkpoint. If none is
  // readable, returns the error of the newest. Returns FailedPrecondition if a checkpoint has other data or another
  // seed, or if the run has weights, which training would replace, but no checkpoint.
  absl::StatusOr<bool> Resume();
  // Trains until step `options.steps`, or until evaluations stop improving (TrainerOptions::patience), and saves. On
  // Ctrl-C, SIGTERM, SIGHUP or SIGUSR1, finishes the step, saves and returns Cancelled. If a weight is not finite, or
  // too many steps were skipped, returns Aborted without saving. The message names the op that caused this, if the op
  // is found.
  absl::Status Train(Progress* progress);

  // Adds a text, such as a sample of the trained model, to the event file, if there is one. Call AddText after Train.
  absl::Status AddText(const std::string& name, absl::string_view text) { return log_.AppendText(step_, name, text); }

  // Checks that the run's folder still has all files that its weights need, and writes missing ones again. Warns on
  // stderr about those. Returns an error if that fails, or if the weights were removed. Call it on rank 0 after Train.
  absl::Status CheckFiles() const;

  int64_t step() const { return step_; }  // the number of updates so far
  const TrainingHistory& history() const { return history_; }

 private:
  Trainer(const TrainerOptions& options, TrainingTask* task, Parameters* parameters, const RunDirectory* run)
      : options_(options), task_(task), parameters_(parameters), run_(run) {}
  absl::Status LoadStep(int64_t step);
  absl::Status OpenLog();
  absl::Status AddInsights();
  absl::StatusOr<bool> TakeStep(bool evaluate, const Interrupt& interrupt, Metrics* line, Progress* progress);
  absl::Status ComputeStep(Metrics* line, Progress* progress);
  absl::StatusOr<bool> Evaluate(const Interrupt& interrupt, Metrics* line, Progress* progress);
  absl::Status Report(Metrics line, Progress* progress);
  bool OutOfPatience() const;
  absl::Status Interrupted(Progress* progress) const;
  absl::Status CheckSameWeights() const;
  absl::Status Save();
  absl::Status WriteFiles(bool begun);
  absl::Status RestoreFiles() const;
  absl::Status SaveBest() const;
  absl::Status SaveDivided(const std::string& path) const;
  absl::Status CheckWeights() const;
  absl::Status ExplainSkipping(const StepResult& result);
  absl::Status Stopped(const std::string& why) const;

  TrainerOptions options_;
  TrainingTask* task_;
  Parameters* parameters_;
  const RunDirectory* run_;
  std::unique_ptr<TrainingStep> training_step_;
  std::unique_ptr<Evaluator> evaluator_;
  RunLog log_;  // writes on rank 0 only
  TrainingHistory history_;
  int64_t step_ = 0;
  int64_t tokens_ = 0;       // trained on
  int64_t saved_step_ = -1;  // step of the newest checkpoint that this trainer wrote or loaded
  bool resumed_ = false;
  bool warned_of_metric_ = false;  // that the metric is undefined
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_LOOP_TRAINER_H_
