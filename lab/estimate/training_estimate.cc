// If a step takes long by the cost model, or more memory than there is, a smaller batch is measured. The cost model
// tells how its time compares with that of the whole batch.
#include "weft/lab/estimate/training_estimate.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/core/status.h"
#include "weft/train/options.h"
#include "weft/train/trainer.h"
#include "weft/train/training_step.h"

namespace weft {
namespace {

constexpr uint64_t kSavingBytes = 1'000'000;  // 1 MB: code and buffers of saving, which a measurement does not run
constexpr double kLongStep = 0.4;             // seconds of the cost model as a fraction of the measurement's

constexpr int64_t kMaxMicroBatches = 64;  // more of them are hardly ever wanted

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

// Returns the bytes that the training would allocate. Only the steps are planned, not the evaluations.
absl::StatusOr<uint64_t> AllocatedBytes(JobFactory make, const OptionTexts& changes) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingJob> job, make(changes));
  Parameters parameters({.seed = job->training().seed});
  WEFT_RETURN_IF_ERROR(job->Prepare(&parameters));
  const TrainerOptions trainer = ToTrainerOptions(job->training(), job->batches_per_epoch());
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingStep> step,
                        TrainingStep::Plan(job->programs(), trainer.optimizer, trainer));
  return step->allocated_bytes();
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

std::vector<SmallerTraining> FindSmallerTrainings(JobFactory make, uint64_t limit) {
  std::vector<SmallerTraining> found;
  // Adds the training with the change if it fits. Returns whether it could be planned, and then its bytes.
  const auto try_change = [&](const std::string& flag, const std::string& text) -> std::optional<uint64_t> {
    const absl::StatusOr<uint64_t> bytes = AllocatedBytes(make, {{flag, text}});
    if (!bytes.ok()) return std::nullopt;
    if (*bytes <= limit) found.push_back({flag, text, *bytes});
    return *bytes;
  };
  const absl::StatusOr<std::unique_ptr<TrainingJob>> job = make({});
  if (!job.ok()) return found;
  const int64_t batch = BatchOf(job->get());
  const TrainerOptions& options = (*job)->training().trainer;
  for (int64_t smaller = batch / 2; smaller >= 1; smaller /= 2) {
    const std::optional<uint64_t> bytes = try_change("batch", absl::StrCat(smaller));
    if (!bytes || *bytes <= limit) break;
  }
  for (int64_t more = 2 * options.micro_batches; more <= std::min(batch, kMaxMicroBatches); more *= 2) {
    const std::optional<uint64_t> bytes = try_change("micro-batches", absl::StrCat(more));
    if (!bytes || *bytes <= limit) break;
  }
  if (options.precision == kF32) try_change("precision", "bf16");
  // A budget of what is left beside weights and state; it is not found if the graph can't keep within it.
  const absl::StatusOr<PlannedJob> planned = PlanJob(make, {});
  if (planned.ok() && planned->plan.step->graphs().size() == 1) {
    const uint64_t fixed = planned->plan.step->allocated_bytes() - planned->plan.memory.planned;
    if (limit > fixed) try_change("memory-budget", absl::StrCat(limit - fixed));
  }
  return found;
}

std::string ListTrainings(const std::vector<SmallerTraining>& trainings) {
  std::string text;
  for (const SmallerTraining& each : trainings) {
    absl::StrAppendFormat(&text, "%s--%s=%s (%.1f MB)", text.empty() ? "; these would fit: " : ", ", each.flag,
                          each.text, static_cast<double>(each.bytes) * 1e-6);
  }
  return text;
}

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
      estimate.memory.code = estimate.speed.code + kSavingBytes;
    }
  }
  WEFT_ASSIGN_OR_RETURN(estimate.time, EstimateTime(planned.job.get(), planned.plan, estimate.speed));
  return estimate;
}

}  // namespace weft
