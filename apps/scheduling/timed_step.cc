#include "weft/apps/scheduling/timed_step.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "weft/core/cores.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/graph/compile.h"
#include "weft/lab/measure.h"
#include "weft/lab/measured.h"

namespace weft {

namespace fs = std::filesystem;

Hyperparameters StepTable(StepFlags* flags, const std::string& out_help) {
  return {{"graph", "whose training step is run", &flags->graph, {.choices = RealGraphNames()}},
          {"out", out_help, &flags->out, {.is_path = true}},
          {"overwrite", "in place of a file that is there", &flags->overwrite},
          {"policy", "which ready task comes next", &flags->policy, {.choices = PolicyNames()}},
          {"costs",
           "a file of `weft calibrate`, for priorities and estimates; none: the cost model's",
           &flags->costs,
           {.is_path = true}},
          {"precision", "of products and what lies between them", &flags->precision, {.choices = {"f32", "bf16"}}},
          {"threads", "workers; 0: as many as there are cores", &flags->threads, {.low = 0, .high = 1024}},
          {"runs", "of which the last is written", &flags->runs, {.low = 1, .high = 1000}}};
}

absl::Status CheckOut(const std::string& flag, const std::string& out, bool overwrite) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(out, error);  // a link would be replaced, not followed
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", out, " is not a file"));
  }
  if (fs::exists(status) && !overwrite) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", out, " is there: --overwrite replaces it"));
  }
  const fs::path folder = fs::absolute(out, error).parent_path();
  if (error || !fs::is_directory(folder, error)) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag, ": there is no folder ", folder.string()));
  }
  return UsageError(CheckWritable(out));
}

absl::Status WriteOut(const std::string& out, bool overwrite, absl::string_view text) {
  return UsageError(WriteFile(out, {text}, overwrite ? IfThere::kReplace : IfThere::kFail));
}

absl::StatusOr<Calibration> ReadCalibration(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return UsageError(text.status());
  return Calibration::FromJson(*text, path);
}

absl::StatusOr<TimedStep> RunTimedStep(const StepFlags& flags) {
  WEFT_RETURN_IF_ERROR(CheckOut("out", flags.out, flags.overwrite));
  std::error_code error;
  if (!flags.costs.empty() && fs::equivalent(flags.costs, flags.out, error)) {
    return absl::InvalidArgumentError(absl::StrCat("--costs and --out are one file, ", flags.out));
  }
  TimedStep step = {.recorded = RecordRealGraph(flags.graph), .policy = FindPolicy(flags.policy)};
  if (!flags.costs.empty() && step.policy->measured) {
    return absl::InvalidArgumentError(
        absl::StrCat("--costs sets priorities, but --policy=", flags.policy, " takes measured ones"));
  }
  if (!flags.costs.empty()) {
    WEFT_ASSIGN_OR_RETURN(step.calibration, ReadCalibration(flags.costs));
  }
  RealGraph& recorded = *step.recorded;
  WEFT_RETURN_IF_ERROR(recorded.tape.status());
  if (flags.precision == "bf16") recorded.options.precision = kBF16;
  WEFT_ASSIGN_OR_RETURN(step.graph, Compile(recorded.tape, recorded.options));
  step.parameters = std::make_unique<Parameters>(Parameters::Options{.seed = 1});
  if (step.policy->measured) {
    WEFT_ASSIGN_OR_RETURN(step.graph, WithMeasuredTimes(*step.graph, recorded.feeds, step.parameters.get()));
  } else if (step.calibration) {
    step.graph = WithTimes(*step.graph, step.calibration->TaskSeconds(*step.graph));
  }
  step.threads = flags.threads > 0 ? static_cast<int>(flags.threads) : Cores();
  if (step.policy == &kSerial) step.threads = 1;
  Runner runner(*step.graph, step.parameters.get(), {.threads = step.threads, .policy = step.policy, .timed = true});
  for (int64_t run = 0; run < flags.runs; ++run) {
    const Clock::time_point start = Clock::now();
    WEFT_RETURN_IF_ERROR(runner.Run(recorded.feeds).status());
    step.seconds = SecondsSince(start);
  }
  step.tiles = {runner.tile_times().begin(), runner.tile_times().end()};
  return step;
}

}  // namespace weft
