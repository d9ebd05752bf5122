// What the commands of the scheduling laboratory have in common: a training step by name, compiled, run and timed.
#ifndef WEFT_APPS_SCHEDULING_TIMED_STEP_H_
#define WEFT_APPS_SCHEDULING_TIMED_STEP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/apps/flags.h"
#include "weft/core/parameters.h"
#include "weft/graph/graph.h"
#include "weft/graph/runner.h"
#include "weft/lab/calibration.h"
#include "weft/lab/real_graphs.h"

namespace weft {

struct StepFlags {
  std::string graph = "gpt2", policy = "critical-path", precision = "f32", costs, out;
  int64_t threads = 0, runs = 3;
  bool overwrite = false;
  GivenFlags given;
};
// `out_help` says what is written there.
Hyperparameters StepTable(StepFlags* flags, const std::string& out_help);

struct TimedStep {
  std::unique_ptr<RealGraph> recorded;
  std::unique_ptr<Parameters> parameters;
  std::optional<Graph> graph;  // with the priorities that it ran by
  std::optional<Calibration> calibration;
  const Policy* policy = nullptr;
  int threads = 1;
  double seconds = 0;           // of the last run
  std::vector<TileTime> tiles;  // of it
};
// Checks that `flags.out` can be written, then runs the step.
absl::StatusOr<TimedStep> RunTimedStep(const StepFlags& flags);

// InvalidArgument unless `flag`=`out` can be made or, if it is there, may be replaced.
absl::Status CheckOut(const std::string& flag, const std::string& out, bool overwrite);
// Writes it. Without `overwrite` an error if it came to be there meanwhile.
absl::Status WriteOut(const std::string& out, bool overwrite, absl::string_view text);
// Usage errors if it can't be read or isn't what `weft calibrate` writes.
absl::StatusOr<Calibration> ReadCalibration(const std::string& path);

}  // namespace weft

#endif  // WEFT_APPS_SCHEDULING_TIMED_STEP_H_
