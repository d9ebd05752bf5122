// The commands about a training step share these flags and functions, which choose the step and how it runs.
#ifndef WEFT_APPS_INSPECT_STEP_FLAGS_H_
#define WEFT_APPS_INSPECT_STEP_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/apps/flags.h"
#include "weft/lab/calibration.h"
#include "weft/lab/real_graphs.h"
#include "weft/lab/timed_step.h"
#include "weft/options/hyperparameters.h"

namespace weft {

// The flags that choose a graph, and an argument that names a run or a graph.
struct ChoiceFlags {
  std::string run, graph, precision;
  int64_t batch = 0, step = 0;
};
Hyperparameters ChoiceTable(ChoiceFlags* flags);
// Lets the command line name a run or a graph without a flag.
void AddRun(CLI::App* app, ChoiceFlags* flags);
// Returns the graph that is chosen; by default, gpt2. Returns a usage error if two graphs are.
absl::StatusOr<GraphChoice> ToChoice(const ChoiceFlags& flags);

struct StepFlags {
  ChoiceFlags choice;
  std::string policy = "critical-path", costs, out;
  int64_t threads = 0, runs = 3;
  bool overwrite = false;
  GivenFlags given;
};
// Returns the table of flags that the commands which time a step share. `out_help`: the help text of --out.
Hyperparameters StepTable(StepFlags* flags, const std::string& out_help);

struct StepRun {
  std::string name;  // of the graph or the run
  TimedStep step;
  std::optional<Calibration> calibration;  // the file of --costs
};
// Checks the flags, and that --out can be written. Then compiles the step and executes it `flags.runs` times; the
// result has the times of the last execution.
absl::StatusOr<StepRun> RunStep(const StepFlags& flags);

// Parses whole numbers from 1 to `limit`, separated by commas. Returns them in ascending order, without duplicates.
// `flag`: name of the flag, for error messages.
absl::StatusOr<std::vector<int>> ParseCounts(const std::string& flag, const std::string& text, int limit);
// Reads a file that `weft calibrate` wrote, or nothing if `path` is empty. Returns a usage error if the file can't be
// read or is not a calibration.
absl::StatusOr<std::optional<Calibration>> ReadCalibration(const std::string& path);

}  // namespace weft

#endif  // WEFT_APPS_INSPECT_STEP_FLAGS_H_
