// The commands that time a training step share these flags and functions. The flags choose the step and how it runs.
// The functions check, read and write the files of the commands.
#ifndef WEFT_APPS_INSPECT_STEP_FLAGS_H_
#define WEFT_APPS_INSPECT_STEP_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/apps/flags.h"
#include "weft/lab/calibration.h"
#include "weft/lab/timed_step.h"

namespace weft {

struct StepFlags {
  std::string graph = "gpt2", policy = "critical-path", precision = "f32", costs, out;
  int64_t threads = 0, runs = 3;
  bool overwrite = false;
  GivenFlags given;
};
// Returns the table of flags that the commands which time a step share. `out_help`: the help text of --out.
Hyperparameters StepTable(StepFlags* flags, const std::string& out_help);

struct StepRun {
  TimedStep step;
  std::optional<Calibration> calibration;  // the file of --costs
};
// Checks the flags, and that --out can be written. Then compiles the step and executes it `flags.runs` times; the
// result has the times of the last execution.
absl::StatusOr<StepRun> RunStep(const StepFlags& flags);

DType PrecisionOf(const std::string& name);  // "f32" or "bf16"

// Checks that `out`, the value of `flag`, can be written: its folder is writable, and `out` is new or, if `overwrite`
// is true, a regular file. A link is not a regular file. Otherwise returns a usage error.
absl::Status CheckOut(const std::string& flag, const std::string& out, bool overwrite);
// Writes `text` to `out`. If the file exists and `overwrite` is false, returns an error.
absl::Status WriteOut(const std::string& out, bool overwrite, absl::string_view text);
// Reads a file that `weft calibrate` wrote. Returns a usage error if the file can't be read or is not a calibration.
absl::StatusOr<Calibration> ReadCalibration(const std::string& path);

}  // namespace weft

#endif  // WEFT_APPS_INSPECT_STEP_FLAGS_H_
