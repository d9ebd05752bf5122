#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/apps/scheduling/timed_step.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/lab/measure.h"
#include "weft/lab/measured.h"
#include "weft/lab/trace.h"

namespace weft {
namespace {

constexpr char kOut[] = "the trace, for ui.perfetto.dev or chrome://tracing";

struct ProfileFlags : StepFlags {
  int64_t cost = 0;
};

Hyperparameters Table(ProfileFlags* flags) {
  Hyperparameters table = StepTable(flags, kOut);
  table.push_back({"cost",
                   "pairs of runs, one with and one without taking the times, that are compared; 0: none",
                   &flags->cost,
                   {.low = 0, .high = 10'000}});
  return table;
}

// What it costs to take the times: by how much a timed run is longer than the untimed one beside it.
absl::Status PrintCost(const TimedStep& step, int64_t pairs) {
  const auto make = [&](bool timed) {
    return std::make_unique<Runner>(*step.graph, step.parameters.get(),
                                    RunnerOptions{.threads = step.threads, .policy = step.policy, .timed = timed});
  };
  const std::unique_ptr<Runner> runners[] = {make(false), make(true)};
  std::vector<double> ratios;
  for (int64_t pair = -1; pair < pairs; ++pair) {  // the first touches memory for the first time
    double seconds[2];
    for (int64_t i : {0, 1}) {
      const int64_t timed = (i + pair) & 1;  // in turns the first of the two
      const Clock::time_point start = Clock::now();
      WEFT_RETURN_IF_ERROR(runners[timed]->Run(step.recorded->feeds).status());
      seconds[timed] = SecondsSince(start);
    }
    if (pair >= 0) ratios.push_back(seconds[1] / seconds[0]);
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf(
      "taking %zu tiles' times makes a run longer by %.2f%%, the median of %lld pairs; half of them are between "
      "%.2f%% and %.2f%%\n",
      step.tiles.size(), 100 * (Median(ratios) - 1), static_cast<long long>(pairs),
      100 * (ratios[ratios.size() / 4] - 1), 100 * (ratios[ratios.size() * 3 / 4] - 1));
  return absl::OkStatus();
}

absl::Status Profile(ProfileFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  WEFT_ASSIGN_OR_RETURN(const TimedStep step, RunTimedStep(flags));
  double busy = 0;
  for (double task : TaskSeconds(*step.graph, step.tiles)) busy += task;
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, ChromeTrace(*step.graph, step.tiles)));
  std::printf("%s: %.2f ms on %d workers, at work %.1f%% of their time; the trace is in %s\n", flags.graph.c_str(),
              step.seconds * 1e3, step.threads, busy / (step.threads * step.seconds) * 100, flags.out.c_str());
  return flags.cost > 0 ? PrintCost(step, flags.cost) : absl::OkStatus();
}

}  // namespace

Command ProfileCommand(CLI::App* weft) {
  auto flags = std::make_shared<ProfileFlags>();
  flags->out = "trace.json";
  CLI::App* app = AddCommand(weft, "profile", "Runs a training step and writes when and where each tile ran.");
  AddFlags(app, Table(flags.get()), &flags->given);
  return {"weft profile", app, [flags] { return Profile(*flags); }};
}

}  // namespace weft
