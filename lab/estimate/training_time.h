// EstimateTime tells how long a planned training takes. The cost model (graph/cost.h) tells how the graphs of different
// batches compare, and a short measurement tells how fast this machine is.
//
//   WEFT_ASSIGN_OR_RETURN(TrainingPlan plan, PlanTraining(&job));
//   WEFT_ASSIGN_OR_RETURN(const MachineSpeed speed, MeasureSpeed(&job, &plan, /*seconds=*/2));
//   WEFT_ASSIGN_OR_RETURN(const TrainingTime time, EstimateTime(&job, plan, speed));
#ifndef WEFT_LAB_ESTIMATE_TRAINING_TIME_H_
#define WEFT_LAB_ESTIMATE_TRAINING_TIME_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "weft/lab/estimate/training_plan.h"
#include "weft/train/jobs/job.h"

namespace weft {

// Ratios of measured seconds to the seconds of the cost model. All are 1 without a measurement.
struct MachineSpeed {
  double training = 1, evaluation = 1;
  // By program, for steps of each program. Programs without an entry have the ratio `training`.
  std::map<size_t, double> programs;
  // Resident bytes that appeared in the measurement beside what TrainingMemory::allocated counts: pages of code, and
  // code that is generated for the shapes of products.
  uint64_t code = 0;
  int64_t steps = 0;   // number of measured steps
  double seconds = 0;  // duration of the measurement
};

// Allocates the step of `plan`, runs it, and then destroys it. Runs training steps and validation batches of `job` for
// about `seconds` seconds.
// The first step of each program is not measured, because it touches memory for the first time, unless it is long.
absl::StatusOr<MachineSpeed> MeasureSpeed(TrainingJob* job, TrainingPlan* plan, double seconds);

struct TrainingTime {
  int64_t steps = 0, evaluations = 0;
  double step_seconds = 0;        // the mean over the run
  double evaluation_seconds = 0;  // of one evaluation
  double tokens_per_second = 0;   // in training steps
  double run_seconds() const {
    return static_cast<double>(steps) * step_seconds + static_cast<double>(evaluations) * evaluation_seconds;
  }
};
absl::StatusOr<TrainingTime> EstimateTime(TrainingJob* job, const TrainingPlan& plan, const MachineSpeed& speed);

}  // namespace weft

#endif  // WEFT_LAB_ESTIMATE_TRAINING_TIME_H_
