// `weft profile` runs a training step and writes a trace of its tiles.
#include <cstdio>
#include <memory>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/core/status.h"
#include "weft/lab/measure.h"
#include "weft/lab/trace.h"

namespace weft {
namespace {

constexpr char kOut[] = "where to write the trace, for ui.perfetto.dev or chrome://tracing; -: standard output";

struct ProfileFlags : StepFlags {
  int64_t cost = 0;
};

Hyperparameters Table(ProfileFlags* flags) {
  Hyperparameters table = StepTable(flags, kOut);
  table.push_back({"cost",
                   "also measure what timing costs, by this number of pairs of runs with and without timing; 0: no "
                   "such measurement",
                   &flags->cost,
                   {.low = 0, .high = 10'000}});
  return table;
}

// Prints by how many percent an execution takes longer if the time of every tile is taken.
absl::Status PrintTimingOverhead(const TimedStep& step, int64_t pairs, std::FILE* to) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<double> ratios, step.TimingOverhead(pairs));
  std::fprintf(
      to,
      "taking %zu tiles' times makes a run longer by %.2f%%, the median of %lld pairs; half of them are between "
      "%.2f%% and %.2f%%\n",
      step.tiles().size(), 100 * (Median(ratios) - 1), static_cast<long long>(pairs),
      100 * (ratios[ratios.size() / 4] - 1), 100 * (ratios[ratios.size() * 3 / 4] - 1));
  return absl::OkStatus();
}

absl::Status Profile(ProfileFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  WEFT_ASSIGN_OR_RETURN(const StepRun run, RunStep(flags));
  const TimedStep& step = run.step;
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, ChromeTrace(step.graph(), step.tiles())));
  std::fprintf(SummaryStream(flags.out),
               "%s: %.2f ms on %d workers, at work %.1f%% of their time; the trace is in %s\n", run.name.c_str(),
               step.seconds() * 1e3, step.threads(), step.utilization() * 100, flags.out.c_str());
  return flags.cost > 0 ? PrintTimingOverhead(step, flags.cost, SummaryStream(flags.out)) : absl::OkStatus();
}

}  // namespace

Command ProfileCommand(CLI::App* weft) {
  auto flags = std::make_shared<ProfileFlags>();
  flags->out = "trace.json";
  CLI::App* app = AddCommand(weft, "profile", "Runs a training step and writes when and where each tile ran.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddRun(app, &flags->choice);
  return {"weft profile",
          app,
          [flags] { return Profile(*flags); },
          "writes a trace of a training step for ui.perfetto.dev",
          {
              {"Writes trace.json.", "weft profile --graph=gpt2"},
              {"Writes a trace with one worker and another policy.",
               "weft profile --graph=gpt2 --threads=1 --policy=fifo --out=fifo.json"},
          }};
}

}  // namespace weft
