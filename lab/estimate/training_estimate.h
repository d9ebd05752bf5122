// EstimateTraining tells the memory and the time that a training will take. The cost model (graph/compile/cost.h) tells
// how the graphs of different batches compare, and a short measurement tells how fast this machine is.
//
//   const auto make = [](const OptionTexts& changes) -> absl::StatusOr<std::unique_ptr<TrainingJob>> { ... };
//   WEFT_ASSIGN_OR_RETURN(const TrainingEstimate estimate, EstimateTraining(make, {.seconds = 3}));
//   std::printf("%.1f MB, %.2f s a step\n", estimate.memory.resident() * 1e-6, estimate.time.step_seconds);
//
// The memory follows from the compiled graphs: their memory plans and the parameters that they name. What the process
// has already, such as its code and the data, is measured.
#ifndef WEFT_LAB_ESTIMATE_TRAINING_ESTIMATE_H_
#define WEFT_LAB_ESTIMATE_TRAINING_ESTIMATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "weft/graph/graph.h"
#include "weft/train/jobs/job.h"
#include "weft/train/loop/options.h"
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

// Tells how much memory a training takes, before it allocates any for values or weights. Records the steps of `job`,
// which must be prepared, on its tapes and compiles them. `job` must outlive the result. No other step can be recorded
// on these tapes afterwards.
absl::StatusOr<TrainingPlan> PlanTraining(TrainingJob* job);

// Returns the number of evaluations in a run of `options.steps` steps. `batches`: validation batches of the task.
int64_t CountEvaluations(const TrainerOptions& options, int64_t batches);

using OptionTexts = std::map<std::string, std::string>;  // texts of options, as SetFromText reads them, by flag
// Returns a job with all options set and checked, of which `changes` are set last. The job is not prepared.
using JobFactory = absl::FunctionRef<absl::StatusOr<std::unique_ptr<TrainingJob>>(const OptionTexts& changes)>;

struct EstimateOptions {
  double seconds = 3;      // duration of the measurement; 0: none, so that times are those of the cost model
  uint64_t available = 0;  // bytes that the measurement may allocate; 0: no limit
};

// Ratios of measured seconds to the seconds of the cost model. All are 1 without a measurement.
struct MachineSpeed {
  double training = 1, evaluation = 1;
  // By program, for steps of each program. Programs without an entry have the ratio `training`.
  std::map<size_t, double> programs;
  // Resident bytes that appeared in the measurement beside what TrainingMemory::allocated counts: pages of code, and
  // code that is generated for the shapes of products.
  uint64_t code = 0;
  int64_t steps = 0;  // number of measured steps
};

struct TrainingTime {
  int64_t steps = 0, evaluations = 0;
  double step_seconds = 0;        // the mean over the run
  double evaluation_seconds = 0;  // of one evaluation
  double tokens_per_second = 0;   // in training steps
  double run_seconds() const {
    return static_cast<double>(steps) * step_seconds + static_cast<double>(evaluations) * evaluation_seconds;
  }
};

struct TrainingEstimate {
  TrainingMemory memory;
  TrainingTime time;
  MachineSpeed speed;          // without a measurement, it has 0 steps
  int64_t batch = 0;           // examples in a batch of the training
  int64_t measured_batch = 0;  // examples in a batch of the measurement; fewer if a step takes long or much memory
};

// Plans the training, and then measures some steps. Of memory, nothing is allocated before the plan is complete.
absl::StatusOr<TrainingEstimate> EstimateTraining(JobFactory make, const EstimateOptions& options);

// A change of one option with which a training needs less memory.
struct SmallerTraining {
  std::string flag, text;  // "batch", "4"
  uint64_t bytes = 0;      // TrainingStep::allocated_bytes
};
// Plans the training with a smaller batch, more micro-batches, bf16, or a memory budget. Of each of these options,
// returns the first change found with which the training allocates at most `limit` bytes; or nothing if none helps.
std::vector<SmallerTraining> FindSmallerTrainings(JobFactory make, uint64_t limit);
// Returns "; these would fit: --batch=4 (812.3 MB), --precision=bf16 (900.1 MB)", or "" if `trainings` is empty.
std::string ListTrainings(const std::vector<SmallerTraining>& trainings);

}  // namespace weft

#endif  // WEFT_LAB_ESTIMATE_TRAINING_ESTIMATE_H_
