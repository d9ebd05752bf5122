#include <cstdio>
#include <iterator>
#include <memory>

#include "weft/apps/commands.h"
#include "weft/apps/scheduling/timed_step.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/graph/compile.h"
#include "weft/lab/measured.h"

namespace weft {
namespace {

struct CalibrateFlags {
  std::string out = "costs.json", graph = "gpt2", precision = "f32";
  int64_t runs = 5;
  bool overwrite = false;
  GivenFlags given;
};

Hyperparameters Table(CalibrateFlags* flags) {
  return {{"out", "what ops take on this machine", &flags->out, {.is_path = true}},
          {"overwrite", "in place of a file that is there", &flags->overwrite},
          {"graph",
           "the training step whose costs are compared with what was measured",
           &flags->graph,
           {.choices = RealGraphNames()}},
          {"precision", "of that step", &flags->precision, {.choices = {"f32", "bf16"}}},
          {"runs", "of each graph, of which the medians count", &flags->runs, {.low = 1, .high = 1000}}};
}

absl::StatusOr<std::vector<TileSample>> MeasureSamples(RealGraph* recorded, DType precision, int64_t runs) {
  WEFT_RETURN_IF_ERROR(recorded->tape.status());
  recorded->options.precision = precision;
  WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(recorded->tape, recorded->options));
  Parameters parameters({.seed = 1});
  WEFT_ASSIGN_OR_RETURN(const RunTimes times, MeasureOnOneWorker(graph, recorded->feeds, &parameters, runs));
  return Samples(graph, CallSeconds(graph, times.tiles()));
}

void Print(const EstimateErrors& errors) {
  std::printf("%-28s %6s %12s %12s %6s %16s\n", "kind", "nodes", "measured_ms", "expected_ms", "ratio",
              "median_node_off");
  for (const KindError& kind : errors.kinds) {
    std::printf("%-28s %6d %12.3f %12.3f %6.2f %15.1f%%\n", kind.kind.c_str(), kind.calls, kind.seconds * 1e3,
                kind.estimate * 1e3, kind.estimate / kind.seconds, kind.median_off * 100);
  }
}

absl::Status Calibrate(CalibrateFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  WEFT_RETURN_IF_ERROR(CheckOut("out", flags.out, flags.overwrite));
  std::vector<TileSample> samples;
  for (const DType precision : {kF32, kBF16}) {
    for (const std::string& name : CalibrationGraphNames()) {
      const std::unique_ptr<RealGraph> recorded = RecordRealGraph(name);
      WEFT_ASSIGN_OR_RETURN(std::vector<TileSample> more, MeasureSamples(recorded.get(), precision, flags.runs));
      std::move(more.begin(), more.end(), std::back_inserter(samples));
    }
  }
  const Calibration calibration = Calibration::Fit(samples);
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, calibration.ToJson()));

  const std::unique_ptr<RealGraph> check = RecordRealGraph(flags.graph);
  WEFT_ASSIGN_OR_RETURN(const std::vector<TileSample> checked,
                        MeasureSamples(check.get(), flags.precision == "bf16" ? kBF16 : kF32, flags.runs));
  const EstimateErrors errors = CompareEstimates(checked, &calibration);
  Print(errors);
  std::printf(
      "\nthe median node of %s is off by %.1f%% of what it took (by the cost model that cuts tiles %.1f%%); %s has the "
      "costs of %zu nodes\n",
      flags.graph.c_str(), errors.median_off * 100, CompareEstimates(checked, nullptr).median_off * 100,
      flags.out.c_str(), samples.size());
  return absl::OkStatus();
}

}  // namespace

Command CalibrateCommand(CLI::App* weft) {
  auto flags = std::make_shared<CalibrateFlags>();
  CLI::App* app = AddCommand(weft, "calibrate", "Finds what ops take on this machine, for priorities and pictures.");
  AddFlags(app, Table(flags.get()), &flags->given);
  return {"weft calibrate", app, [flags] { return Calibrate(*flags); }};
}

}  // namespace weft
