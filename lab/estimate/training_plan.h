// PlanTraining tells how much memory a training takes, before it allocates any for values or weights.
//
//   WEFT_RETURN_IF_ERROR(job.Prepare(&parameters));
//   WEFT_ASSIGN_OR_RETURN(const TrainingPlan plan, PlanTraining(&job));
//   std::printf("%.1f MB\n", plan.memory.resident() * 1e-6);
//
// The figures follow from the compiled graphs: their memory plans and the parameters that they name. What the process
// has already, such as its code and the data, is measured.
#ifndef WEFT_LAB_ESTIMATE_TRAINING_PLAN_H_
#define WEFT_LAB_ESTIMATE_TRAINING_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/graph/graph.h"
#include "weft/train/jobs/job.h"
#include "weft/train/loop/trainer_options.h"
#include "weft/train/step/training_step.h"

namespace weft {

// 8 MB: pages of code that a training reads, and code that it generates for its shapes; found on several models.
inline constexpr uint64_t kCodeBytes = 8'000'000;

// All figures are in bytes.
struct TrainingMemory {
  uint64_t planned = 0;        // TrainingStep::planned_bytes: values of all graphs of a step, and sums of gradients
  uint64_t values = 0;         // the part of `planned` that graphs of a step use which the run really executes
  uint64_t evaluation = 0;     // planned values of the evaluations' graphs
  uint64_t weights = 0;        // weights, trained or not
  uint64_t state = 0;          // the optimizer's moments, averaged weights and other state
  uint64_t workers = 0;        // constants of the graphs, and workspaces of their workers
  uint64_t code = kCodeBytes;  // code that runs in training only, or that is generated then; measured if possible
  uint64_t process = 0;        // resident memory after planning: code, data, tapes and graphs
  uint64_t highest = 0;        // maximum resident memory up to then

  // Returns the bytes that the training allocates after it is planned.
  uint64_t allocated() const { return values + evaluation + weights + state + workers; }
  // Returns the expected maximum of the resident memory.
  uint64_t resident() const { return std::max(highest, process + code + allocated()); }
};

// Seconds by the cost model (graph/compile/cost.h), on the workers of the training.
struct TrainingCosts {
  std::vector<double> training, evaluation;  // of a micro-batch, by program
  double others = 0;                         // of a step's graphs that are not of a program
  double step = 0;                           // of an average step of the run
};

struct TrainingPlan {
  TrainerOptions options;
  std::unique_ptr<TrainingStep> step;             // planned, not allocated
  std::vector<std::optional<Graph>> evaluations;  // the graph of each program; unset: no evaluation uses the program
  ProgramCounts counts;                           // of the whole run, and of one evaluation
  int64_t evaluated = 0;                          // number of evaluations; with averages, each after step 0 is two
  TrainingMemory memory;
  TrainingCosts costs;
};

// Records the steps of `job`, which must be prepared, on its tapes and compiles them. `job` must outlive the result. No
// other step can be recorded on these tapes afterwards.
absl::StatusOr<TrainingPlan> PlanTraining(TrainingJob* job);

// Returns the number of evaluations in a run of `options.steps` steps. `batches`: validation batches of the task.
int64_t CountEvaluations(const TrainerOptions& options, int64_t batches);

}  // namespace weft

#endif  // WEFT_LAB_ESTIMATE_TRAINING_PLAN_H_
