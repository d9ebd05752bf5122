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
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/distributed/weight_gathers.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"
#include "weft/train/loop/history.h"
#include "weft/train/loop/interrupt.h"
#include "weft/train/loop/options.h"
#include "weft/train/run/metrics.h"
#include "weft/train/run/run_directory.h"
#include "weft/train/run/run_log.h"
#include "weft/train/step/step_options.h"
#include "weft/train/step/task.h"
#include "weft/train/step/training_step.h"

namespace weft {

// An Evaluator measures a task's validation loss and accuracy (train/loop/evaluator.cc).
//
// Several ranks share an evaluation: rank r of N measures batches r, r + N, r + 2 N, ... Every rank then adds the
// figures of all batches in their order, so the result has the same bits on any number of ranks. If the task wants
// predictions (TrainingProgram::prediction), every rank measures all batches.
//
// If ranks have divided the weights, all of them gather the weights for each batch together. A rank without a batch, or
// with an empty one, gathers them, too.
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
