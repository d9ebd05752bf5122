// The commands about a training step share these flags and functions. The flags choose the step and how it runs. The
// functions check, read and write the files of the commands.
#ifndef WEFT_APPS_INSPECT_STEP_FLAGS_H_
#define WEFT_APPS_INSPECT_STEP_FLAGS_H_

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

inline constexpr char kStandardOutput[] = "-";  // as the name of a file to write
// Returns where a command that writes the file `out` prints its summary: stderr if `out` is standard output.
std::FILE* SummaryStream(const std::string& out);
// Checks that `out`, the value of `flag`, can be written: its folder is writable, and `out` is new or, if `overwrite`
// is true, a regular file; or `out` is kStandardOutput. A link is not a regular file. Otherwise returns a usage error.
absl::Status CheckOut(const std::string& flag, const std::string& out, bool overwrite);
// Writes `text` to `out`, or to standard output. If the file exists and `overwrite` is false, returns an error.
absl::Status WriteOut(const std::string& out, bool overwrite, absl::string_view text);
// Parses whole numbers from 1 to `limit`, separated by commas. Returns them in ascending order, without duplicates.
// `flag`: name of the flag, for error messages.
absl::StatusOr<std::vector<int>> ParseCounts(const std::string& flag, const std::string& text, int limit);
// Reads a file that `weft calibrate` wrote. Returns a usage error if the file can't be read or is not a calibration.
absl::StatusOr<Calibration> ReadCalibration(const std::string& path);

}  // namespace weft

#endif  // WEFT_APPS_INSPECT_STEP_FLAGS_H_
