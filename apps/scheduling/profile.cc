#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/bench/measure.h"
#include "weft/bench/real_graphs.h"
#include "weft/core/cores.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/graph/compile.h"
#include "weft/graph/measured.h"
#include "weft/graph/trace.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

struct ProfileFlags {
  std::string graph = "gpt2", policy = "critical-path", out = "trace.json", precision = "f32";
  int64_t threads = 0, runs = 3;
  bool overwrite = false;
  GivenFlags given;
};

Hyperparameters Table(ProfileFlags* flags) {
  return {{"graph", "whose training step is run", &flags->graph, {.choices = RealGraphNames()}},
          {"out", "the trace, for ui.perfetto.dev or chrome://tracing", &flags->out, {.is_path = true}},
          {"overwrite", "in place of a file that is there", &flags->overwrite},
          {"policy", "which ready task comes next", &flags->policy, {.choices = PolicyNames()}},
          {"precision", "of products and what lies between them", &flags->precision, {.choices = {"f32", "bf16"}}},
          {"threads", "workers; 0: as many as there are cores", &flags->threads, {.low = 0, .high = 1024}},
          {"runs", "of which the last is written", &flags->runs, {.low = 1, .high = 1000}}};
}

// Before anything is run: the file is not there, unless it may be replaced, and one can be made in its place.
absl::Status CheckOut(const std::string& out, bool overwrite) {
  std::error_code error;
  const fs::file_status status = fs::status(out, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return absl::InvalidArgumentError(absl::StrCat("--out: ", out, " is not a file"));
  }
  if (fs::exists(status) && !overwrite) {
    return absl::InvalidArgumentError(absl::StrCat("--out: ", out, " is there: --overwrite replaces it"));
  }
  const fs::path folder = fs::absolute(out).parent_path();
  if (!fs::is_directory(folder, error)) {
    return absl::InvalidArgumentError(absl::StrCat("--out: there is no folder ", folder.string()));
  }
  return absl::OkStatus();
}

absl::Status Profile(ProfileFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  WEFT_RETURN_IF_ERROR(CheckOut(flags.out, flags.overwrite));
  const std::unique_ptr<RealGraph> recorded = RecordRealGraph(flags.graph);
  WEFT_RETURN_IF_ERROR(recorded->tape.status());
  if (flags.precision == "bf16") recorded->options.precision = kBF16;
  WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(recorded->tape, recorded->options));
  Parameters parameters({.seed = 1});
  const Policy& policy = *FindPolicy(flags.policy);
  if (policy.measured) {
    WEFT_ASSIGN_OR_RETURN(graph, WithMeasuredTimes(graph, recorded->feeds, &parameters));
  }
  const int threads = flags.threads > 0 ? static_cast<int>(flags.threads) : Cores();
  Runner runner(graph, &parameters, {.threads = threads, .policy = &policy, .timed = true});
  double seconds = 0;
  for (int64_t run = 0; run < flags.runs; ++run) {
    const Clock::time_point start = Clock::now();
    WEFT_RETURN_IF_ERROR(runner.Run(recorded->feeds).status());
    seconds = SecondsSince(start);
  }
  double busy = 0;
  for (double task : TaskSeconds(graph, runner.tile_times())) busy += task;
  WEFT_RETURN_IF_ERROR(UsageError(WriteFile(flags.out, {ChromeTrace(graph, runner.tile_times())})));
  std::printf("%s: %.2f ms on %d workers, at work %.1f%% of their time; the trace is in %s\n", flags.graph.c_str(),
              seconds * 1e3, threads, busy / (threads * seconds) * 100, flags.out.c_str());
  return absl::OkStatus();
}

}  // namespace

Command ProfileCommand(CLI::App* weft) {
  auto flags = std::make_shared<ProfileFlags>();
  CLI::App* app = weft->add_subcommand("profile", "Runs a training step and writes when and where each tile ran.");
  AddFlags(app, Table(flags.get()), &flags->given);
  return {"weft profile", app, [flags] { return Profile(*flags); }};
}

}  // namespace weft
