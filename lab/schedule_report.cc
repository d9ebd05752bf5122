// Collects the figures of a timed execution as JSON, which the script in schedule_page.html draws. Rows are lists
// without keys, because an execution has up to millions of tiles. Constants in the script name the columns. In a trace,
// each tile is one event; tiles of the critical path are red.
#include "weft/lab/schedule_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/json.h"
#include "weft/core/op.h"
#include "weft/lab/measured.h"
#include "weft/lab/page.h"
#include "weft/lab/schedule_page.h"
#include "weft/lab/simulate.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFreeNodes = 10;       // of the report
constexpr size_t kMaxSimulatedNodes = 40;  // a simulation takes time, so only the best candidates by estimate get one
constexpr int kProcess = 1;                // of a trace
constexpr int kFirstSendLane = 10'000, kFirstReceiveLane = 20'000;  // thread ids of a trace, above those of workers

// Converts seconds to microseconds, rounded to the nanosecond.
double Rounded(double seconds) { return std::round(seconds * 1e9) * 1e-3; }

// A timed execution, as the report and the trace show it.
class Execution {
 public:
  Execution(const Graph& graph, absl::Span<const TileTime> tiles)
      : graph_(graph),
        compiled_(graph.compiled()),
        tiles_(tiles),
        shares_(TileShares(graph)),
        timeline_(graph, tiles),
        critical_(compiled_.tasks.size()) {
    for (uint32_t task : timeline_.critical_path()) critical_[task] = true;
  }

 protected:
  // Reports whether the task of a tile of `call` is on the critical path.
  bool critical(const KernelCall& call, uint32_t tile) const {
    return critical_[compiled_.groups[call.group].first_task + tile];
  }

  const Graph& graph_;
  const CompiledGraph& compiled_;
  const absl::Span<const TileTime> tiles_;
  const std::vector<double> shares_;  // by tile
  const Timeline timeline_;

 private:
  std::vector<bool> critical_;  // by task
};

class Reporter : Execution {
 public:
  Reporter(const Graph& graph, absl::Span<const TileTime> tiles, const ReportOptions& options)
      : Execution(graph, tiles), options_(options), workers_(std::max(options.workers, timeline_.workers())) {}

  Json Run() {
    const std::vector<double> calls = CallSeconds(graph_, tiles_);
    double busy = 0;
    for (size_t s = 0; s < calls.size(); ++s) busy += compiled_.calls[s].messages.empty() ? calls[s] : 0;
    const Communication communication = timeline_.communication();
    const MemoryFigures& memory = compiled_.memory;
    return {{"title", options_.title},
            {"policy", options_.policy->name},
            {"workers", workers_},
            {"span_us", Microseconds(timeline_.end())},
            {"busy_us", Rounded(busy)},
            {"communication_us", Rounded(communication.communication_seconds)},
            {"hidden_us", Rounded(communication.hidden_seconds)},
            {"nodes", Nodes()},
            {"slices", Slices()},
            {"path", Path()},
            {"live", Levels(timeline_.LiveBytes())},
            {"ready", Levels(timeline_.ReadyTasks())},
            {"planned", memory.planned},
            {"lower_bound", memory.lower_bound},
            {"free", Free()},
            {"costs", Costs(calls)}};
  }

 private:
  // Returns the other side of each message of a call, like "rank 1, tag 6". Returns "" for a call with a kernel.
  static std::string Routes(const KernelCall& call) {
    return absl::StrJoin(call.messages, "; ", [](std::string* routes, const Message& message) {
      absl::StrAppend(routes, message.sends ? "to" : "from", " rank ", message.peer, ", tag ", message.tag);
    });
  }

  // Returns for each kernel call: op, scope, types, FLOPs, bytes, number of tiles, routes of messages.
  Json Nodes() const {
    Json nodes = Json::array();
    for (const KernelCall& call : compiled_.calls) {
      const Node& node = compiled_.program.node(call.node);
      const Types inputs = compiled_.program.InputTypes(node), outputs = compiled_.program.OutputTypes(node);
      const Cost cost = CostOf(*node.op, {node.attrs, inputs, outputs});
      const std::string types =
          absl::StrCat(ToString(TypeSpan(inputs)), inputs.empty() ? "" : " ", "→ ", ToString(TypeSpan(outputs)));
      const double bytes = call.messages.empty() ? cost.bytes : static_cast<double>(MessageBytes(compiled_, call));
      nodes.push_back(
          {node.op->name, compiled_.program.scope(node), types, cost.flops, bytes, call.tile_count, Routes(call)});
    }
    return nodes;
  }

  // Returns for each tile: worker (-1: a send, -2: a receive), begin, duration, kernel call, 1 if the tile is on the
  // critical path or else 0, and the tile's fraction of the call's elements.
  Json Slices() const {
    Json slices = Json::array();
    for (uint32_t s = 0; s < compiled_.calls.size(); ++s) {
      const KernelCall& call = compiled_.calls[s];
      for (uint32_t t = 0; t < call.tile_count; ++t) {
        const TileTime& tile = tiles_[call.first_tile + t];
        slices.push_back({tile.worker, Microseconds(tile.begin), Microseconds(tile.end - tile.begin), s,
                          static_cast<int>(critical(call, t)), std::round(shares_[call.first_tile + t] * 1e4) * 1e-4});
      }
    }
    return slices;
  }

  // Returns for each task of the critical path: the first kernel call of its group and the number of calls, the tile,
  // begin, duration, and how long the task had been ready.
  Json Path() const {
    Json path = Json::array();
    for (uint32_t task : timeline_.critical_path()) {
      const Group& group = compiled_.groups[compiled_.tasks[task].group];
      const Period period = timeline_.period(task);
      path.push_back({group.first_call, group.call_count, compiled_.tasks[task].tile, Microseconds(period.begin),
                      Microseconds(period.end - period.begin),
                      Microseconds(std::max<int64_t>(0, period.begin - timeline_.ready(task)))});
    }
    return path;
  }

  static Json Levels(const std::map<int64_t, int64_t>& levels) {
    Json json = Json::array();
    for (const auto& [time, level] : levels) json.push_back({Microseconds(time), level});
    return json;
  }

  Json Free() const {
    const FreeNodes free = FindFreeNodes(graph_, tiles_, *options_.policy, workers_, kMaxFreeNodes);
    Json nodes = Json::array();
    for (const FreeNode& node : free.nodes) {
      nodes.push_back({node.call, Rounded(node.seconds), Rounded(node.makespan)});
    }
    return {{"makespan_us", Rounded(free.makespan)}, {"nodes", std::move(nodes)}};
  }

  Json Costs(const std::vector<double>& calls) const {
    const EstimateErrors errors = CompareEstimates(Samples(graph_, calls), options_.calibration);
    Json kinds = Json::array();
    for (const KindError& kind : errors.kinds) {
      kinds.push_back({kind.kind, kind.calls, Rounded(kind.seconds), Rounded(kind.estimate), kind.median_off});
    }
    return {{"calibrated", options_.calibration != nullptr}, {"median_off", errors.median_off}, {"kinds", kinds}};
  }

  const ReportOptions& options_;
  const int workers_;
};

class Tracer : Execution {
 public:
  using Execution::Execution;

  std::string Run() {
    AddLanes();
    for (const KernelCall& call : compiled_.calls) AddCall(call);
    AddCounter("ready tasks", "tasks", timeline_.ReadyTasks());
    AddCounter("live values", "bytes", timeline_.LiveBytes());
    return JsonLine({{"traceEvents", std::move(events_)}, {"displayTimeUnit", "ms"}});
  }

 private:
  void AddLane(int id, const std::string& name) {
    events_.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", kProcess}, {"tid", id}, {"args", {{"name", name}}}});
  }

  void AddLanes() {
    for (int w = 0; w < timeline_.workers(); ++w) AddLane(w, absl::StrCat("worker ", w));
    AddMessageLanes(TileTime::kSendLane, kFirstSendLane, "sends");
    AddMessageLanes(TileTime::kReceiveLane, kFirstReceiveLane, "receives");
  }

  // Gives each message of a direction the first lane that is free at its start.
  void AddMessageLanes(int direction, int first_lane, const char* name) {
    std::vector<uint32_t> messages;
    for (uint32_t t = 0; t < tiles_.size(); ++t) {
      if (tiles_[t].worker == direction) messages.push_back(t);
    }
    std::sort(messages.begin(), messages.end(),
              [&](uint32_t a, uint32_t b) { return tiles_[a].begin < tiles_[b].begin; });
    std::vector<int64_t> ends;  // by lane: the end of its last message
    for (const uint32_t t : messages) {
      const auto free = std::find_if(ends.begin(), ends.end(), [&](int64_t end) { return end <= tiles_[t].begin; });
      lanes_[t] = first_lane + static_cast<int>(free - ends.begin());
      if (free == ends.end()) {
        ends.push_back(tiles_[t].end);
        AddLane(lanes_[t], ends.size() == 1 ? name : absl::StrCat(name, " ", ends.size()));
      } else {
        *free = tiles_[t].end;
      }
    }
  }

  // Adds the slice of a tile of `call`, or of its messages. Adds the key "critical" to `args`.
  void AddSlice(const KernelCall& call, uint32_t tile, Json args) {
    const TileTime& time = tiles_[call.first_tile + tile];
    const auto lane = lanes_.find(call.first_tile + tile);
    args["critical"] = critical(call, tile);
    Json event = {{"name", compiled_.program.node(call.node).op->name},
                  {"ph", "X"},
                  {"ts", Microseconds(time.begin)},
                  {"dur", Microseconds(time.end - time.begin)},
                  {"pid", kProcess},
                  {"tid", lane == lanes_.end() ? time.worker : lane->second},
                  {"args", std::move(args)}};
    if (event["args"]["critical"]) event["cname"] = "terrible";  // red
    events_.push_back(std::move(event));
  }

  void AddMessages(const KernelCall& call) {
    Json args = {{"scope", compiled_.program.scope(compiled_.program.node(call.node))}};
    if (call.messages.size() > 1) args["messages"] = call.messages.size();
    args["peer"] = call.messages[0].peer;
    args["tag"] = call.messages[0].tag;
    args["bytes"] = MessageBytes(compiled_, call);
    AddSlice(call, 0, std::move(args));
  }

  void AddCall(const KernelCall& call) {
    if (!call.messages.empty()) return AddMessages(call);
    const Node& node = compiled_.program.node(call.node);
    const Types inputs = compiled_.program.InputTypes(node), outputs = compiled_.program.OutputTypes(node);
    const Cost cost = CostOf(*node.op, {node.attrs, inputs, outputs});
    std::string types;
    for (const TensorType& type : inputs) absl::StrAppend(&types, types.empty() ? "" : " ", ToString(type));
    absl::StrAppend(&types, " ->");
    for (const TensorType& type : outputs) absl::StrAppend(&types, " ", ToString(type));
    for (uint32_t t = 0; t < call.tile_count; ++t) {
      const TileTime& time = tiles_[call.first_tile + t];
      const Rect& rect = compiled_.tiles[call.first_tile + t];
      const double share = shares_[call.first_tile + t];
      const double flops = cost.flops * share, nanoseconds = static_cast<double>(time.end - time.begin);
      Json args = {{"scope", compiled_.program.scope(node)},
                   {"types", types},
                   {"rows", absl::StrCat(rect.row_begin, "..", rect.row_end)},
                   {"cols", absl::StrCat(rect.col_begin, "..", rect.col_end)},
                   {"bytes", static_cast<int64_t>(cost.bytes * share)},
                   {"gflops", nanoseconds > 0 ? flops / nanoseconds : 0}};
      AddSlice(call, t, std::move(args));
    }
  }

  void AddCounter(const char* name, const char* unit, const std::map<int64_t, int64_t>& levels) {
    for (const auto& [time, level] : levels) {
      events_.push_back(
          {{"name", name}, {"ph", "C"}, {"ts", Microseconds(time)}, {"pid", kProcess}, {"args", {{unit, level}}}});
    }
  }

  std::map<uint32_t, int> lanes_;  // by tile of a message
  Json events_ = Json::array();
};

}  // namespace

FreeNodes FindFreeNodes(const Graph& graph, absl::Span<const TileTime> tiles, const Policy& policy, int workers,
                        size_t count) {
  const CompiledGraph& compiled = graph.compiled();
  std::vector<TaskCost> costs;
  for (double seconds : TaskSeconds(graph, tiles)) costs.push_back({.seconds = seconds});
  const SimulatedMachine machine = {.workers = workers};
  FreeNodes free = {.makespan = Simulate(compiled.schedule, costs, policy, machine).makespan};

  // Candidates are the calls with the largest sum of two times: their total time divided by the number of workers, and
  // their time on the critical path.
  const std::vector<double> seconds = CallSeconds(graph, tiles);
  std::vector<double> most(seconds.size());
  for (size_t s = 0; s < seconds.size(); ++s) most[s] = seconds[s] / workers;
  const int sharing = policy.shares ? workers : 1;
  for (uint32_t task : FindCriticalPath(compiled.schedule, SecondsOf(costs), sharing).tasks) {
    if (compiled.tasks[task].group == Task::kJoin) continue;
    const Group& group = compiled.groups[compiled.tasks[task].group];
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) {
      const TileTime& tile = tiles[compiled.calls[s].first_tile + compiled.tasks[task].tile];
      most[s] += static_cast<double>(tile.end - tile.begin) * 1e-9 / compiled.schedule.SharersOf(task, sharing);
    }
  }
  std::vector<uint32_t> candidates(seconds.size());
  for (uint32_t s = 0; s < candidates.size(); ++s) candidates[s] = s;
  std::sort(candidates.begin(), candidates.end(), [&](uint32_t a, uint32_t b) { return most[a] > most[b]; });
  candidates.resize(std::min(candidates.size(), std::max(kMaxSimulatedNodes, count)));

  for (uint32_t s : candidates) {
    const KernelCall& call = compiled.calls[s];
    std::vector<TaskCost> without = costs;
    for (uint32_t t = 0; t < call.tile_count; ++t) {
      const TileTime& tile = tiles[call.first_tile + t];
      double& left = without[compiled.groups[call.group].first_task + t].seconds;
      left = std::max(0.0, left - static_cast<double>(tile.end - tile.begin) * 1e-9);
    }
    const double makespan = Simulate(compiled.schedule, without, policy, machine).makespan;
    if (makespan < free.makespan) free.nodes.push_back({s, seconds[s], makespan});
  }
  std::sort(free.nodes.begin(), free.nodes.end(), [](auto& a, auto& b) { return a.makespan < b.makespan; });
  free.nodes.resize(std::min(free.nodes.size(), count));
  return free;
}

std::string ScheduleReport(const Graph& graph, absl::Span<const TileTime> tiles, const ReportOptions& options) {
  return FillPage(kSchedulePage, JsonLine(Reporter(graph, tiles, options).Run()));
}

std::string ChromeTrace(const Graph& graph, absl::Span<const TileTime> tiles) { return Tracer(graph, tiles).Run(); }

}  // namespace weft
