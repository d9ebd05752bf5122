// EstimateTraining tells the memory and the time that a training will take. The cost model (graph/compile/cost.h) tells
// how the graphs of different batches compare, and a short measurement tells how fast this machine is.
//
//   const auto make = [](const OptionTexts& changes) -> absl::StatusOr<std::unique_ptr<TrainingJob>> { ... };
//   WEFT_ASSIGN_OR_RETURN(const TrainingEstimate estimate, EstimateTraining(make, {.seconds = 3}));
//   std::printf("%.1f MB, %.2f s a step\n", estimate.memory.resident() * 1e-6, estimate.time.step_seconds);
#ifndef WEFT_LAB_ESTIMATE_TRAINING_ESTIMATE_H_
#define WEFT_LAB_ESTIMATE_TRAINING_ESTIMATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "weft/lab/estimate/training_plan.h"
#include "weft/train/jobs/job.h"

namespace weft {

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
