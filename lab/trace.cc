// Each tile becomes one event of the trace. Tiles of the critical path are red.
#include "weft/lab/trace.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "weft/core/op.h"
#include "weft/lab/measured.h"
#include "weft/lab/timeline.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 1;

class Tracer {
 public:
  Tracer(const Graph& graph, absl::Span<const TileTime> tiles)
      : graph_(graph.compiled()), tiles_(tiles), shares_(TileShares(graph)), timeline_(graph, tiles) {}

  std::string Run() {
    critical_.insert(timeline_.critical_path().begin(), timeline_.critical_path().end());
    AddLanes();
    for (uint32_t s = 0; s < graph_.calls.size(); ++s) AddCall(s);
    AddCounter("ready tasks", "tasks", timeline_.ReadyTasks());
    AddCounter("live values", "bytes", timeline_.LiveBytes());
    return Json{{"traceEvents", std::move(events_)}, {"displayTimeUnit", "ms"}}.dump(-1, ' ', false,
                                                                                     Json::error_handler_t::replace);
  }

 private:
  void AddLanes() {
    for (int w = 0; w < timeline_.workers(); ++w) {
      events_.push_back({{"name", "thread_name"},
                         {"ph", "M"},
                         {"pid", kProcess},
                         {"tid", w},
                         {"args", {{"name", absl::StrCat("worker ", w)}}}});
    }
  }

  void AddCall(uint32_t s) {
    const KernelCall& call = graph_.calls[s];
    const Node& node = graph_.program.node(call.node);
    const Types inputs = graph_.program.InputTypes(node), outputs = graph_.program.OutputTypes(node);
    const Cost cost = CostOf(*node.op, {node.attrs, inputs, outputs});
    std::string types;
    for (const TensorType& type : inputs) absl::StrAppend(&types, types.empty() ? "" : " ", ToString(type));
    absl::StrAppend(&types, " ->");
    for (const TensorType& type : outputs) absl::StrAppend(&types, " ", ToString(type));
    for (uint32_t t = 0; t < call.tile_count; ++t) {
      const TileTime& time = tiles_[call.first_tile + t];
      const Rect& rect = graph_.tiles[call.first_tile + t];
      const double share = shares_[call.first_tile + t];
      const double flops = cost.flops * share, nanoseconds = static_cast<double>(time.end - time.begin);
      Json args = {{"scope", graph_.program.scope(node)},
                   {"types", types},
                   {"rows", absl::StrCat(rect.row_begin, "..", rect.row_end)},
                   {"cols", absl::StrCat(rect.col_begin, "..", rect.col_end)},
                   {"bytes", static_cast<int64_t>(cost.bytes * share)},
                   {"gflops", nanoseconds > 0 ? flops / nanoseconds : 0},
                   {"critical", critical_.contains(graph_.groups[call.group].first_task + t)}};
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

  void AddCounter(const char* name, const char* unit, const std::map<int64_t, int64_t>& levels) {
    for (const auto& [time, level] : levels) {
      events_.push_back(
          {{"name", name}, {"ph", "C"}, {"ts", Microseconds(time)}, {"pid", kProcess}, {"args", {{unit, level}}}});
    }
  }

  const CompiledGraph& graph_;
  const absl::Span<const TileTime> tiles_;
  const std::vector<double> shares_;  // by tile
  const Timeline timeline_;
  std::set<uint32_t> critical_;
  Json events_ = Json::array();
};

}  // namespace

std::string ChromeTrace(const Graph& graph, absl::Span<const TileTime> tiles) { return Tracer(graph, tiles).Run(); }

}  // namespace weft
