#include "weft/bench/policies.h"

#include <deque>
#include <optional>
#include <vector>

#include "oneapi/tbb/flow_graph.h"
#include "oneapi/tbb/task_arena.h"
#include "weft/graph/executor.h"

namespace weft {
namespace {

class OurExecutor : public Policy {
 public:
  OurExecutor(const PolicyInput& input, int threads) : work_(input.work), executor_(input.schedule, threads) {}

  void Run() override {
    executor_.Run([this](uint32_t, int) { work_(); });
  }

 private:
  const NodeWork work_;
  Executor executor_;
};

class FlowGraph : public Policy {
 public:
  explicit FlowGraph(const PolicyInput& input) : work_(input.work), arena_(input.threads) {
    arena_.execute([&] { Build(*input.graph); });
  }
  ~FlowGraph() override {
    arena_.execute([&] {
      nodes_.clear();
      graph_.reset();
    });
  }

  void Run() override {
    arena_.execute([&] {
      for (Node* source : sources_) source->try_put({});
      graph_->wait_for_all();
    });
  }

 private:
  using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;

  void Build(const TaskGraph& graph) {
    graph_.emplace();  // it belongs to the arena where it is made
    for (uint32_t t = 0; t < graph.nodes; ++t) {
      nodes_.emplace_back(*graph_, [this](const tbb::flow::continue_msg&) { work_(); });
    }
    std::vector<bool> waits(graph.nodes);
    for (const auto& [before, after] : graph.edges) {
      tbb::flow::make_edge(nodes_[before], nodes_[after]);
      waits[after] = true;
    }
    for (uint32_t t = 0; t < graph.nodes; ++t) {
      if (!waits[t]) sources_.push_back(&nodes_[t]);
    }
  }

  const NodeWork work_;
  tbb::task_arena arena_;
  std::optional<tbb::flow::graph> graph_;
  std::deque<Node> nodes_;
  std::vector<Node*> sources_;
};

}  // namespace

std::unique_ptr<Policy> SerialPolicy(const PolicyInput& input) { return std::make_unique<OurExecutor>(input, 1); }

std::unique_ptr<Policy> CriticalPathPolicy(const PolicyInput& input) {
  return std::make_unique<OurExecutor>(input, input.threads);
}

std::unique_ptr<Policy> FlowGraphPolicy(const PolicyInput& input) { return std::make_unique<FlowGraph>(input); }

}  // namespace weft
