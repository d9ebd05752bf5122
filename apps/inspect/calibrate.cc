// `weft calibrate` measures the costs of ops on this machine and writes them to a file. Then it compares estimates from
// these costs with measured times of a training step. With --network, it measures messages between two ranks instead,
// and with --threads how much threads slow each other down.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/apps/streams.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/distributed/connect_messenger.h"
#include "weft/distributed/messenger.h"
#include "weft/distributed/ranks.h"
#include "weft/lab/machine/sharing.h"
#include "weft/lab/network.h"
#include "weft/lab/timed_step.h"

namespace weft {
namespace {

constexpr int kMaxThreads = 1024;
// The flags that are for the costs of ops.
constexpr const char* kOfOps[] = {"graph", "batch", "step", "precision", "runs"};

struct CalibrateFlags {
  ChoiceFlags choice;  // the step whose measured costs are compared with the estimates
  std::string out = "costs.json";
  std::string imitate, threads;
  int64_t runs = 5;
  bool overwrite = false, network = false;
  GivenFlags given;
};

Hyperparameters Table(CalibrateFlags* flags) {
  Hyperparameters table = {
      {"out", "where to write the costs of ops on this machine; -: standard output", &flags->out, {.is_path = true}},
      {"overwrite", "replace the output file if it exists", &flags->overwrite},
      {"runs", "number of runs of each graph; the medians count", &flags->runs, {.low = 1, .high = 1000}},
      {"threads",
       "measure how much these numbers of threads, separated by commas, slow each other down, instead of the costs of "
       "ops; adds the figures to the output file",
       &flags->threads,
       {.needs = "no network", .type = "N,N,..."}},
      {"network",
       "measure the network between two ranks instead of ops, under mpirun or with --imitate; adds it to the output "
       "file",
       &flags->network},
      {"imitate",
       "measure a network that this process imitates, such as 25us,10Gbit",
       &flags->imitate,
       {.needs = "network", .type = "LATENCY,BANDWIDTH"}}};
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

void PrintSharing(absl::Span<const SharingRow> rows, std::FILE* to) {
  std::fprintf(to, "%7s %9s %8s %8s %12s\n", "threads", "f32_gflops", "copy_gb", "wake_us", "moved_us_mb");
  for (const SharingRow& row : rows) {
    std::fprintf(to, "%7d %10.1f %8.1f %8.1f %12.1f\n", row.threads, row.flops * 1e-9, row.bytes * 1e-9,
                 row.wake_seconds * 1e6, row.moved_byte_seconds * 1e12);
  }
}

absl::Status CalibrateOps(const CalibrateFlags& flags) {
  WEFT_RETURN_IF_ERROR(CheckOut("out", flags.out, flags.overwrite));
  WEFT_ASSIGN_OR_RETURN(const GraphChoice choice, ToChoice(flags.choice));
  WEFT_RETURN_IF_ERROR(UsageError(RecordGraph(choice).status()));  // before anything is measured
  WEFT_ASSIGN_OR_RETURN(const std::vector<TileSample> samples, MeasureCalibrationSamples(flags.runs));
  const Calibration calibration = Calibration::Fit(samples);
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, calibration.ToJson()));

  WEFT_ASSIGN_OR_RETURN(const TimedStep step, TimedStep::Create({.graph = choice, .threads = 1}));
  WEFT_ASSIGN_OR_RETURN(const std::vector<TileSample> checked, step.MeasureSamples(flags.runs));
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

// Returns the network between ranks 0 and 1, or the imitated one.
absl::StatusOr<Network> Measure(const CalibrateFlags& flags, Messenger* messenger) {
  if (!flags.imitate.empty()) {
    WEFT_ASSIGN_OR_RETURN(const Network imitated, UsageError(ParseNetwork(flags.imitate)));
    return MeasureImitatedNetwork(imitated);
  }
  if (messenger == nullptr || messenger->size() != 2) {
    return InvalidArgument("--network measures between 2 ranks, but there are ",
                           messenger == nullptr ? 1 : messenger->size(),
                           ": start it with mpirun -np 2, or imitate a network with --imitate=25us,10Gbit");
  }
  return MeasureNetwork(messenger);
}

// Measures the network, or how much threads slow each other down. Adds the figures to the file of --out if the file
// exists; otherwise writes a new file.
absl::Status AddToCalibration(const CalibrateFlags& flags, Messenger* messenger) {
  const Ranks ranks(messenger);
  const bool there = ranks.first() && flags.out != kStandardOutput && Exists(flags.out);
  const absl::StatusOr<std::optional<Calibration>> old = ReadCalibration(there ? flags.out : "");
  absl::Status status = old.status();
  status.Update(CheckNotGiven(flags.given, kOfOps, " is for the costs of ops, not for --threads or --network"));
  if (!flags.choice.run.empty()) status.Update(InvalidArgument("a run is for the costs of ops"));
  if (ranks.first()) status.Update(CheckOut("out", flags.out, there));
  WEFT_RETURN_IF_ERROR(AllAgree(ranks, status));
  Calibration calibration = old->value_or(Calibration());
  if (!flags.network) {
    WEFT_ASSIGN_OR_RETURN(std::vector<int> threads, ParseCounts("threads", flags.threads, kMaxThreads));
    if (threads.front() > 1) threads.insert(threads.begin(), 1);  // what the others are compared with
    calibration.set_sharing(MeasureSharing(threads));
    WEFT_RETURN_IF_ERROR(WriteOut(flags.out, /*overwrite=*/true, calibration.ToJson()));
    PrintSharing(calibration.sharing(), SummaryStream(flags.out));
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(const Network network, Measure(flags, messenger));
  if (messenger != nullptr && messenger->rank() > 0) return absl::OkStatus();
  calibration.set_network(network);
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, /*overwrite=*/true, calibration.ToJson()));
  std::fprintf(SummaryStream(flags.out), "--network=%s: the latency and the bandwidth between two ranks, also in %s\n",
               ToString(network).c_str(), flags.out.c_str());
  return absl::OkStatus();
}

absl::Status Calibrate(CalibrateFlags flags) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Messenger> messenger, ConnectMessenger());
  const Ranks ranks(messenger.get());
  absl::Status status = SetFromFlags(flags.given, Table(&flags));
  if (status.ok() && !flags.network && ranks.size() > 1) {
    status = InvalidArgument("the costs of ops are measured on one process, but this one is one of ", ranks.size(),
                             " ranks, between which --network measures");
  }
  if (status.ok()) {
    const bool adds = flags.network || !flags.threads.empty();
    status = adds ? AddToCalibration(flags, messenger.get()) : CalibrateOps(flags);
  }
  return PrintedByFirst(ranks, status);
}

}  // namespace

Command CalibrateCommand(CLI::App* weft, const std::string& name) {
  auto flags = std::make_shared<CalibrateFlags>();
  CLI::App* app =
      AddCommand(weft, name, "Measures what ops or messages cost, or how much threads slow each other down.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddRun(app, &flags->choice);
  return {app,
          [flags] { return Calibrate(*flags); },
          "measures what each kind of op costs on this machine",
          {{"Writes costs.json, for --costs of weft profile and weft report.", "weft calibrate"},
           {"Runs a step by the measured costs.", "weft profile --costs=costs.json --out=by_costs.json"},
           {"Measures how much threads slow each other down, for simulations.",
            "weft calibrate --threads=1,2 --out=machine.json"},
           {"Measures an imitated network; mpirun -np 2 measures a real one.",
            "weft calibrate --network --imitate=25us,10Gbit --out=network.json"}},
          /*on_ranks=*/true};
}

}  // namespace weft
