#include <cstdio>
#include <memory>

#include "weft/apps/commands.h"
#include "weft/apps/scheduling/timed_step.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/lab/measured.h"
#include "weft/lab/trace.h"

namespace weft {
namespace {

constexpr char kOut[] = "the trace, for ui.perfetto.dev or chrome://tracing";

absl::Status Profile(StepFlags flags) {
  WEFT_ASSIGN_OR_RETURN(const TimedStep step, RunTimedStep(&flags));
  double busy = 0;
  for (double task : TaskSeconds(*step.graph, step.tiles)) busy += task;
  WEFT_RETURN_IF_ERROR(UsageError(WriteFile(flags.out, {ChromeTrace(*step.graph, step.tiles)})));
  std::printf("%s: %.2f ms on %d workers, at work %.1f%% of their time; the trace is in %s\n", flags.graph.c_str(),
              step.seconds * 1e3, step.threads, busy / (step.threads * step.seconds) * 100, flags.out.c_str());
  return absl::OkStatus();
}

}  // namespace

Command ProfileCommand(CLI::App* weft) {
  auto flags = std::make_shared<StepFlags>();
  flags->out = "trace.json";
  CLI::App* app = weft->add_subcommand("profile", "Runs a training step and writes when and where each tile ran.");
  AddFlags(app, StepTable(flags.get(), kOut), &flags->given);
  return {"weft profile", app, [flags] { return Profile(*flags); }};
}

}  // namespace weft
