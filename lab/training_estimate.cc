// If a step takes long by the cost model, or more memory than there is, a smaller batch is measured. The cost model
// tells how its time compares with that of the whole batch.
#include "weft/lab/training_estimate.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr double kLongStep = 0.4;  // seconds of the cost model as a fraction of the measurement's

int64_t BatchOf(TrainingJob* job) {
  for (const Hyperparameter& row : job->Table()) {
    if (row.flag == "batch") return *std::get<int64_t*>(row.value);
  }
  return 1;
}

// A prepared job with its plan.
struct PlannedJob {
  std::unique_ptr<TrainingJob> job;
  std::unique_ptr<Parameters> parameters;
  TrainingPlan plan;
};

absl::StatusOr<PlannedJob> PlanJob(JobFactory make, const OptionTexts& changes) {
  PlannedJob planned;
  WEFT_ASSIGN_OR_RETURN(planned.job, make(changes));
  planned.parameters = std::make_unique<Parameters>(Parameters::Options{.seed = planned.job->training().seed});
  WEFT_RETURN_IF_ERROR(planned.job->Prepare(planned.parameters.get()));
  WEFT_ASSIGN_OR_RETURN(planned.plan, PlanTraining(planned.job.get()));
  return planned;
}

// Returns the number of examples of a batch that is fast and small enough to measure.
int64_t MeasuredBatch(const TrainingPlan& plan, int64_t batch, const EstimateOptions& options) {
  double fraction = std::min(1.0, kLongStep * options.seconds / plan.costs.step);
  const TrainingMemory& memory = plan.memory;
  const auto available = static_cast<double>(options.available);
  if (options.available > 0 && memory.allocated() > options.available) {
    const double fixed = static_cast<double>(memory.weights + memory.state);
    const double room = std::max(0.0, available - fixed) / static_cast<double>(memory.allocated() - memory.weights);
    fraction = std::min(fraction, room);
  }
  return std::max<int64_t>(1, static_cast<int64_t>(fraction * static_cast<double>(batch)));
}

}  // namespace

absl::StatusOr<TrainingEstimate> EstimateTraining(JobFactory make, const EstimateOptions& options) {
  WEFT_ASSIGN_OR_RETURN(PlannedJob planned, PlanJob(make, {}));
  TrainingEstimate estimate = {.memory = planned.plan.memory, .batch = BatchOf(planned.job.get())};
  if (options.seconds > 0) {
    const int64_t micro_batches = planned.plan.options.micro_batches;
    estimate.measured_batch = MeasuredBatch(planned.plan, estimate.batch, options);
    if (estimate.measured_batch == estimate.batch) {
      WEFT_ASSIGN_OR_RETURN(estimate.speed, MeasureSpeed(planned.job.get(), &planned.plan, options.seconds));
    } else {
      const int64_t fewer = std::max<int64_t>(1, micro_batches * estimate.measured_batch / estimate.batch);
      WEFT_ASSIGN_OR_RETURN(PlannedJob smaller, PlanJob(make, {{"batch", absl::StrCat(estimate.measured_batch)},
                                                               {"micro-batches", absl::StrCat(fewer)}}));
      if (options.available == 0 || smaller.plan.memory.allocated() <= options.available) {
        WEFT_ASSIGN_OR_RETURN(estimate.speed, MeasureSpeed(smaller.job.get(), &smaller.plan, options.seconds));
        estimate.speed.programs.clear();  // these are programs of another batch
      }
    }
    if (estimate.speed.steps == 0) {
      estimate.measured_batch = 0;
    } else {
      estimate.memory.code = estimate.speed.code;
    }
  }
  WEFT_ASSIGN_OR_RETURN(estimate.time, EstimateTime(planned.job.get(), planned.plan, estimate.speed));
  return estimate;
}

}  // namespace weft
