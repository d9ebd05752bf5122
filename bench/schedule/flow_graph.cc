#include "oneapi/tbb/flow_graph.h"

#include <deque>
#include <optional>
#include <vector>

#include "oneapi/tbb/task_arena.h"
#include "weft/bench/schedule/baselines.h"

namespace weft {
namespace {

class FlowGraph : public Executor {
 public:
  FlowGraph(const Schedule* schedule, int threads) : threads_(threads), entered_(threads), arena_(threads) {
    arena_.execute([&] { Build(*schedule); });
  }
  ~FlowGraph() override {
    arena_.execute([&] {
      nodes_.clear();
      graph_.reset();
    });
  }

  void Run(Body body) override {
    body_ = &body;
    entered_.Reset();
    arena_.execute([&] {
      for (Node* source : sources_) source->try_put({});
      graph_->wait_for_all();
    });
  }
  int threads() const override { return threads_; }
  int workers_entered() const override { return entered_.count(); }

 private:
  using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;

  void Build(const Schedule& schedule) {
    graph_.emplace();  // made here, because a flow graph belongs to the arena in which it is made
    for (uint32_t t = 0; t < schedule.size(); ++t) {
      if (t >= schedule.task_count) {
        nodes_.emplace_back(*graph_, [](const tbb::flow::continue_msg&) {});
        continue;
      }
      const TaskPart whole = {t, 0, schedule.PartsOf(t)};
      nodes_.emplace_back(*graph_, [this, whole](const tbb::flow::continue_msg&) {
        const int worker = tbb::this_task_arena::current_thread_index();
        entered_.Enter(worker);
        (*body_)(whole, worker);
      });
    }
    for (uint32_t t = 0; t <= schedule.start(); ++t) {
      schedule.ForEachSuccessor(t, [&](uint32_t next) {
        t == schedule.start() ? sources_.push_back(&nodes_[next]) : tbb::flow::make_edge(nodes_[t], nodes_[next]);
      });
    }
  }

  const int threads_;
  EnteredWorkers entered_;
  tbb::task_arena arena_;
  std::optional<tbb::flow::graph> graph_;
  std::deque<Node> nodes_;
  std::vector<Node*> sources_;
  const Body* body_ = nullptr;
};

}  // namespace

constexpr Policy kFlowGraph = {.name = "flow-graph",
                               .summary = "TBB's flow graph",
                               .executor = [](const Schedule* schedule, int threads) -> std::unique_ptr<Executor> {
                                 return std::make_unique<FlowGraph>(schedule, threads);
                               }};

}  // namespace weft
