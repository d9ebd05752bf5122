// Each tile becomes one event of the trace. Tiles of the critical path are red.
#include "weft/lab/trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/json.h"
#include "weft/core/op.h"
#include "weft/lab/measured.h"
#include "weft/lab/timeline.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 1;
constexpr int kFirstSendLane = 10'000, kFirstReceiveLane = 20'000;  // thread ids of the trace, above those of workers

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

  // Adds the slice of a tile, or of the messages of a call. Adds the key "critical" to `args`.
  void AddSlice(const char* name, uint32_t tile, uint32_t task, Json args) {
    const TileTime& time = tiles_[tile];
    const auto lane = lanes_.find(tile);
    args["critical"] = critical_.contains(task);
    Json event = {{"name", name},
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
    const Node& node = graph_.program.node(call.node);
    Json args = {{"scope", graph_.program.scope(node)}};
    if (call.messages.size() > 1) args["messages"] = call.messages.size();
    args["peer"] = call.messages[0].peer;
    args["tag"] = call.messages[0].tag;
    args["bytes"] = MessageBytes(graph_, call);
    AddSlice(node.op->name, call.first_tile, graph_.groups[call.group].first_task, std::move(args));
  }

  void AddCall(uint32_t s) {
    const KernelCall& call = graph_.calls[s];
    if (!call.messages.empty()) return AddMessages(call);
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
                   {"gflops", nanoseconds > 0 ? flops / nanoseconds : 0}};
      AddSlice(node.op->name, call.first_tile + t, graph_.groups[call.group].first_task + t, std::move(args));
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
  std::map<uint32_t, int> lanes_;  // by tile of a message
  Json events_ = Json::array();
};

}  // namespace

std::string ChromeTrace(const Graph& graph, absl::Span<const TileTime> tiles) { return Tracer(graph, tiles).Run(); }

}  // namespace weft
