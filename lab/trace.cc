#include "weft/graph/trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/graph/measured.h"
#include "weft/graph/simulate.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 1;
double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

// When a task's first tile began and its last one ended; of a join, when the last that it waits for did.
struct Span {
  int64_t begin = 0, end = 0;
};

class Tracer {
 public:
  Tracer(const Graph& graph, absl::Span<const TileTime> tiles)
      : graph_(graph.compiled()), tiles_(tiles), spans_(graph_.schedule.size()), ready_(graph_.schedule.size(), 0) {
    std::vector<TaskCost> costs;
    for (double seconds : TaskSeconds(graph, tiles)) costs.push_back({.seconds = seconds});
    for (uint32_t task : FindCriticalPath(graph_.schedule, costs).tasks) critical_.insert(task);
    for (uint32_t task : SerialOrder(graph_.schedule)) {
      spans_[task] = SpanOf(task);
      for (uint32_t i = graph_.schedule.first_successor[task]; i < graph_.schedule.first_successor[task + 1]; ++i) {
        int64_t& ready = ready_[graph_.schedule.successors[i] & ~Schedule::kAlone];
        ready = std::max(ready, spans_[task].end);
      }
    }
  }

  std::string Run() {
    AddLanes();
    for (uint32_t s = 0; s < graph_.steps.size(); ++s) AddStep(s);
    AddReady();
    AddLive();
    return Json{{"traceEvents", std::move(events_)}, {"displayTimeUnit", "ms"}}.dump();
  }

 private:
  Span SpanOf(uint32_t task) const {
    if (task >= graph_.tasks.size() || graph_.tasks[task].group == Task::kJoin) return {ready_[task], ready_[task]};
    const auto [group_number, tile] = graph_.tasks[task];
    const Group& group = graph_.groups[group_number];
    return {tiles_[graph_.steps[group.first_step].first_tile + tile].begin,
            tiles_[graph_.steps[group.end_step() - 1].first_tile + tile].end};
  }

  void AddLanes() {
    int workers = 1;
    for (const TileTime& tile : tiles_) workers = std::max(workers, tile.worker + 1);
    for (int w = 0; w < workers; ++w) {
      events_.push_back({{"name", "thread_name"},
                         {"ph", "M"},
                         {"pid", kProcess},
                         {"tid", w},
                         {"args", {{"name", absl::StrCat("worker ", w)}}}});
    }
  }

  void AddStep(uint32_t s) {
    const Step& step = graph_.steps[s];
    const Node& node = graph_.program.node(step.node);
    const Types inputs = graph_.program.InputTypes(node), outputs = graph_.program.OutputTypes(node);
    const Cost cost = CostOf(*node.op, {node.attrs, inputs, outputs});
    std::string types;
    for (const TensorType& type : inputs) absl::StrAppend(&types, types.empty() ? "" : " ", ToString(type));
    absl::StrAppend(&types, " ->");
    for (const TensorType& type : outputs) absl::StrAppend(&types, " ", ToString(type));
    for (uint32_t t = 0; t < step.tile_count; ++t) {
      const TileTime& time = tiles_[step.first_tile + t];
      const Rect& rect = graph_.tiles[step.first_tile + t];
      const double flops = cost.flops / step.tile_count, nanoseconds = static_cast<double>(time.end - time.begin);
      Json args = {{"scope", graph_.program.scope(node)},
                   {"types", types},
                   {"rows", absl::StrCat(rect.row_begin, "..", rect.row_end)},
                   {"cols", absl::StrCat(rect.col_begin, "..", rect.col_end)},
                   {"bytes", static_cast<int64_t>(cost.bytes / step.tile_count)},
                   {"gflops", nanoseconds > 0 ? flops / nanoseconds : 0},
                   {"critical", critical_.contains(graph_.groups[step.group].first_task + t)}};
      Json event = {{"name", node.op->name},
                    {"ph", "X"},
                    {"ts", Microseconds(time.begin)},
                    {"dur", Microseconds(time.end - time.begin)},
                    {"pid", kProcess},
                    {"tid", time.worker},
                    {"args", std::move(args)}};
      if (event["args"]["critical"]) event["cname"] = "terrible";  // red
      events_.push_back(std::move(event));
    }
  }

  // A counter that changes by so much at these times.
  void AddCounter(const char* name, const char* unit, const std::map<int64_t, int64_t>& changes) {
    int64_t value = 0;
    for (const auto& [time, change] : changes) {
      if (change == 0) continue;
      value += change;
      events_.push_back(
          {{"name", name}, {"ph", "C"}, {"ts", Microseconds(time)}, {"pid", kProcess}, {"args", {{unit, value}}}});
    }
  }

  void AddReady() {
    std::map<int64_t, int64_t> changes;
    for (uint32_t t = 0; t < graph_.tasks.size(); ++t) {
      if (graph_.tasks[t].group == Task::kJoin) continue;
      ++changes[std::min(ready_[t], spans_[t].begin)];
      --changes[spans_[t].begin];
    }
    AddCounter("ready tasks", "tasks", changes);
  }

  // From the first tile of who makes a value to the last tile of who reads it or a view of it.
  void AddLive() {
    std::vector<Span> live(graph_.program.values.size(), {-1, -1});  // by storage root
    for (uint32_t s = 0; s < graph_.steps.size(); ++s) {
      const Node& node = graph_.program.node(graph_.steps[s].node);
      Span step = {std::numeric_limits<int64_t>::max(), 0};
      for (uint32_t t = 0; t < graph_.steps[s].tile_count; ++t) {
        const TileTime& tile = tiles_[graph_.steps[s].first_tile + t];
        step = {std::min(step.begin, tile.begin), std::max(step.end, tile.end)};
      }
      for (uint32_t i = 0; i < node.output_count; ++i) live[static_cast<size_t>(node.output(i))] = step;
      for (ValueId in : node.inputs) {
        Span& read = live[static_cast<size_t>(graph_.storage_roots[static_cast<size_t>(in)])];
        read.end = std::max(read.end, step.end);
      }
    }
    std::map<int64_t, int64_t> changes;
    for (size_t v = 0; v < live.size(); ++v) {
      if (live[v].begin < 0 || graph_.places[v].kind != Place::Kind::kArena) continue;
      const int64_t bytes = static_cast<int64_t>(graph_.program.values[v].type.bytes());
      changes[live[v].begin] += bytes;
      changes[live[v].end] -= bytes;
    }
    AddCounter("live values", "bytes", changes);
  }

  const CompiledGraph& graph_;
  const absl::Span<const TileTime> tiles_;
  std::vector<Span> spans_;     // by task
  std::vector<int64_t> ready_;  // by task: when the last that it waits for ended
  std::set<uint32_t> critical_;
  Json events_ = Json::array();
};

}  // namespace

std::string ChromeTrace(const Graph& graph, absl::Span<const TileTime> tiles) { return Tracer(graph, tiles).Run(); }

}  // namespace weft
