// `weft profile` runs a training step and writes a trace of its tiles. With several ranks, under mpirun or as threads
// of this process, the step is that of all ranks, and the trace is that of rank 0.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/apps/streams.h"
#include "weft/base/status.h"
#include "weft/distributed/connect_messenger.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/messenger.h"
#include "weft/distributed/ranks.h"
#include "weft/graph/run/transport.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/measured.h"
#include "weft/lab/network.h"
#include "weft/lab/ranks/rank_step.h"
#include "weft/lab/schedule_report.h"

namespace weft {
namespace {

constexpr char kOut[] = "where to write the trace, for ui.perfetto.dev or chrome://tracing; -: standard output";

struct ProfileFlags : StepFlags {
  int64_t cost = 0, ranks = 1;
  std::string network;
};

Hyperparameters Table(ProfileFlags* flags) {
  Hyperparameters table = StepTable(flags, kOut);
  table.push_back({"cost",
                   "also measure what timing costs, by this number of pairs of runs with and without timing; 0: no "
                   "such measurement",
                   &flags->cost,
                   {.low = 0, .high = 10'000}});
  table.push_back({"ranks",
                   "number of ranks, which are threads of this process with one worker each; the trace is that of rank "
                   "0, from its last micro-batch to the end of all messages",
                   &flags->ranks,
                   {.low = 1, .high = 64}});
  table.push_back({"network",
                   "latency and bandwidth between such ranks, which this process imitates, such as 25us,10Gbit; "
                   "default: no delays",
                   &flags->network,
                   {.needs = "ranks", .type = "LATENCY,BANDWIDTH"}});
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

absl::Status ProfileOneRank(const ProfileFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const StepRun run, RunStep(flags));
  const TimedStep& step = run.step;
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, ChromeTrace(step.graph(), step.tiles())));
  std::fprintf(SummaryStream(flags.out),
               "%s: %.2f ms on %d workers, at work %.1f%% of their time; the trace is in %s\n", run.name.c_str(),
               step.seconds() * 1e3, step.threads(), step.utilization() * 100, flags.out.c_str());
  return flags.cost > 0 ? PrintTimingOverhead(step, flags.cost, SummaryStream(flags.out)) : absl::OkStatus();
}

// Runs the step of one of several ranks. Rank 0 writes its trace.
absl::Status ProfileRank(const ProfileFlags& flags, const GraphChoice& choice, Transport* transport) {
  absl::StatusOr<std::unique_ptr<RankStep>> planned = UsageError(RankStep::Plan({.graph = choice,
                                                                                 .rank = transport->rank(),
                                                                                 .ranks = transport->size(),
                                                                                 .micro_batches = transport->size(),
                                                                                 .transport = transport}));
  WEFT_RETURN_IF_ERROR(AllAgree(Ranks(transport), planned.status()));
  const std::unique_ptr<RankStep> step = *std::move(planned);
  WEFT_ASSIGN_OR_RETURN(const std::vector<double> seconds, step->Run(flags.runs));
  if (transport->rank() > 0) return absl::OkStatus();
  for (const RankStep::Part& part : step->parts()) {
    if (!part.has_messages) continue;
    const Graph& graph = step->graph(part);
    WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, ChromeTrace(graph, step->tiles(part))));
    const Communication communication = Timeline(graph, step->tiles(part)).communication();
    std::fprintf(SummaryStream(flags.out),
                 "%s: %.2f ms on %d ranks; messages took %.2f ms, of which %.1f%% are hidden behind kernels; the trace "
                 "of rank 0 is in %s\n",
                 choice.name.c_str(), seconds.back() * 1e3, transport->size(),
                 communication.communication_seconds * 1e3,
                 100 * communication.hidden_seconds / communication.communication_seconds, flags.out.c_str());
  }
  return absl::OkStatus();
}

// `messenger`: connects this process with the other ranks. Null: the ranks are threads.
absl::Status ProfileRanks(const ProfileFlags& flags, Messenger* messenger) {
  WEFT_RETURN_IF_ERROR(
      CheckNotGiven(flags.given, {"policy", "costs", "threads", "cost"}, " is not for a trace of several ranks"));
  if (messenger != nullptr && flags.given.count("ranks") + flags.given.count("network") > 0) {
    return InvalidArgument("--ranks and --network are for ranks that are threads, but this process is one of ",
                           messenger->size(), " ranks already");
  }
  // Ranks on machines of their own may find other files there.
  const Ranks ranks(messenger);
  absl::Status status = ranks.first() ? CheckOut("out", flags.out, flags.overwrite) : absl::OkStatus();
  const absl::StatusOr<GraphChoice> found = ToChoice(flags.choice);
  status.Update(found.status());
  WEFT_RETURN_IF_ERROR(AllAgree(ranks, status));
  const GraphChoice& choice = *found;
  if (messenger != nullptr) return ProfileRank(flags, choice, messenger);
  InProcessOptions imitation;
  if (!flags.network.empty()) {
    WEFT_ASSIGN_OR_RETURN(const Network network, Annotate(ParseNetwork(flags.network), "--network"));
    imitation = Imitation(network);
  }
  std::vector<absl::Status> statuses(static_cast<size_t>(flags.ranks));
  const auto run = [&](Transport* transport) {
    statuses[static_cast<size_t>(transport->rank())] = ProfileRank(flags, choice, transport);
  };
  RunRanks(static_cast<int>(flags.ranks), run, imitation);
  for (const absl::Status& status : statuses) WEFT_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status Profile(ProfileFlags flags) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Messenger> messenger, ConnectMessenger());
  absl::Status status = SetFromFlags(flags.given, Table(&flags));
  if (status.ok()) {
    status = messenger != nullptr || flags.ranks > 1 ? ProfileRanks(flags, messenger.get()) : ProfileOneRank(flags);
  }
  return PrintedByFirst(Ranks(messenger.get()), status);
}

}  // namespace

Command ProfileCommand(CLI::App* weft, const std::string& name) {
  auto flags = std::make_shared<ProfileFlags>();
  flags->out = "trace.json";
  CLI::App* app = AddCommand(weft, name, "Runs a training step and writes when and where each tile ran.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddRun(app, &flags->choice);
  return {app,
          [flags] { return Profile(*flags); },
          "writes a trace of a training step for ui.perfetto.dev",
          {{"Writes trace.json.", "weft profile --graph=gpt2"},
           {"Writes a trace with one worker and another policy.",
            "weft profile --graph=gpt2 --threads=1 --policy=fifo --out=fifo.json"},
           {"Writes a trace of two ranks with their messages.",
            "weft profile --graph=charcpu --ranks=2 --network=50us,10Gbit --out=ranks.json"}},
          /*on_ranks=*/true};
}

}  // namespace weft
