#include "weft/bench/op_times.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <tuple>
#include <utility>

#include "weft/bench/measure.h"

namespace weft {

// Stands in the graph as what its kernel was given by OpDef::prepare.
struct OpTimes::TimedStep {
  KernelFunction kernel = nullptr;
  std::shared_ptr<const void> prepared;
  mutable std::atomic<int64_t> nanoseconds{0};

  static void Run(const KernelArgs& args, Rect tile) {
    const TimedStep& step = *static_cast<const TimedStep*>(args.prepared);
    KernelArgs own = args;
    own.prepared = step.prepared.get();
    const Clock::time_point start = Clock::now();
    step.kernel(own, tile);
    step.nanoseconds.fetch_add(std::chrono::nanoseconds(Clock::now() - start).count(), std::memory_order_relaxed);
  }
};

OpTimes::OpTimes(const Graph& graph) : graph_(graph) {
  auto timed = std::make_shared<CompiledGraph>(graph.compiled());
  for (Step& step : timed->steps) {
    steps_.push_back(std::make_unique<TimedStep>());
    steps_.back()->kernel = step.kernel;
    steps_.back()->prepared = step.prepared.state;
    step.kernel = TimedStep::Run;
    step.prepared.state = std::shared_ptr<const void>(std::shared_ptr<const void>(), steps_.back().get());
  }
  graph_ = Graph(std::move(timed));
}

OpTimes::~OpTimes() = default;

void OpTimes::Reset() {
  for (const auto& step : steps_) step->nanoseconds = 0;
}

std::vector<OpTimes::Row> OpTimes::Rows() const {
  const CompiledGraph& graph = graph_.compiled();
  std::map<std::pair<std::string, std::string>, Row> rows;
  std::map<std::string, double> seconds;  // by op
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Node& node = graph.program.node(graph.steps[i].node);
    const Types inputs = graph.program.InputTypes(node), outputs = graph.program.OutputTypes(node);
    const Cost cost = CostOf(*node.op, {node.attrs, inputs, outputs});
    const std::string type = outputs.empty() ? "" : ToString(outputs[0]);
    Row& row = rows[{node.op->name, type}];
    row.op = node.op->name;
    row.type = type;
    const double mine = static_cast<double>(steps_[i]->nanoseconds) * 1e-9;
    row.seconds += mine;
    seconds[row.op] += mine;
    row.flops += cost.flops;
    row.bytes += cost.bytes;
    row.tiles += graph.steps[i].tile_count;
  }
  std::vector<Row> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Row& a, const Row& b) {
    return std::tuple(-seconds[a.op], a.op, -a.seconds) < std::tuple(-seconds[b.op], b.op, -b.seconds);
  });
  return sorted;
}

}  // namespace weft
