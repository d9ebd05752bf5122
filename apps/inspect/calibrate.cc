// `weft calibrate` measures the costs of ops on this machine and writes them to a file. Then it compares estimates from
// these costs with measured times of a training step.
#include <cstdio>
#include <memory>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/core/status.h"
#include "weft/lab/measure_samples.h"
#include "weft/train/options.h"

namespace weft {
namespace {

struct CalibrateFlags {
  ChoiceFlags choice;  // the step whose measured costs are compared with the estimates
  std::string out = "costs.json";
  int64_t runs = 5;
  bool overwrite = false;
  GivenFlags given;
};

Hyperparameters Table(CalibrateFlags* flags) {
  Hyperparameters table = {
      {"out", "where to write the costs of ops on this machine; -: standard output", &flags->out, {.is_path = true}},
      {"overwrite", "replace the output file if it exists", &flags->overwrite},
      {"runs", "number of runs of each graph; the medians count", &flags->runs, {.low = 1, .high = 1000}}};
  Append(ChoiceTable(&flags->choice), &table);
  return table;
}

void Print(const EstimateErrors& errors, std::FILE* to) {
  std::fprintf(to, "%-28s %6s %12s %12s %6s %16s\n", "kind", "nodes", "measured_ms", "expected_ms", "ratio",
               "median_node_off");
  for (const KindError& kind : errors.kinds) {
    std::fprintf(to, "%-28s %6d %12.3f %12.3f %6.2f %15.1f%%\n", kind.kind.c_str(), kind.calls, kind.seconds * 1e3,
                 kind.estimate * 1e3, kind.estimate / kind.seconds, kind.median_off * 100);
  }
}

absl::Status Calibrate(CalibrateFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  WEFT_RETURN_IF_ERROR(CheckOut("out", flags.out, flags.overwrite));
  WEFT_ASSIGN_OR_RETURN(const GraphChoice choice, ToChoice(flags.choice));
  WEFT_RETURN_IF_ERROR(UsageError(RecordGraph(choice).status()));  // before anything is measured
  WEFT_ASSIGN_OR_RETURN(const std::vector<TileSample> samples, MeasureCalibrationSamples(flags.runs));
  const Calibration calibration = Calibration::Fit(samples);
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, calibration.ToJson()));

  WEFT_ASSIGN_OR_RETURN(const std::vector<TileSample> checked, MeasureSamples(choice, flags.runs));
  const EstimateErrors errors = CompareEstimates(checked, &calibration);
  std::FILE* const to = SummaryStream(flags.out);
  Print(errors, to);
  std::fprintf(
      to,
      "\nthe median node of %s is off by %.1f%% of its measured time (with the cost model that cuts tiles, %.1f%%); %s "
      "has the costs of %zu nodes\n",
      choice.name.c_str(), errors.median_off * 100, CompareEstimates(checked, nullptr).median_off * 100,
      flags.out.c_str(), samples.size());
  return absl::OkStatus();
}

}  // namespace

Command CalibrateCommand(CLI::App* weft) {
  auto flags = std::make_shared<CalibrateFlags>();
  CLI::App* app =
      AddCommand(weft, "calibrate", "Measures the costs of ops on this machine, for priorities and reports.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddRun(app, &flags->choice);
  return {"weft calibrate",
          app,
          [flags] { return Calibrate(*flags); },
          "measures what each kind of op costs on this machine",
          {
              {"Writes costs.json, for --costs of weft profile and weft report.", "weft calibrate"},
              {"Runs a step by the measured costs.", "weft profile --costs=costs.json --out=by_costs.json"},
          }};
}

}  // namespace weft
