// The only file that is compiled with -fopenmp.
#include <omp.h>

#include <atomic>
#include <vector>

#include "weft/bench/policies.h"

namespace weft {
namespace {

class OpenMp : public Policy {
 public:
  explicit OpenMp(const PolicyInput& input)
      : work_(input.work), threads_(input.threads), counts_(input.graph->nodes), first_(input.graph->nodes + 1) {
    const TaskGraph& graph = *input.graph;
    for (const auto& [before, after] : graph.edges) {
      ++first_[before + 1];
      ++counts_[after].waits_for;
    }
    for (uint32_t t = 0; t < graph.nodes; ++t) {
      first_[t + 1] += first_[t];
      counts_[t].left.store(counts_[t].waits_for, std::memory_order_relaxed);
      if (counts_[t].waits_for == 0) sources_.push_back(t);
    }
    successors_.resize(graph.edges.size());
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    for (const auto& [before, after] : graph.edges) successors_[next[before]++] = after;
    omp_set_dynamic(0);
  }

  void Run() override {
#pragma omp parallel num_threads(threads_)
#pragma omp single
    for (uint32_t source : sources_) Spawn(source);
  }

 private:
  struct Count {
    std::atomic<uint32_t> left{0};
    uint32_t waits_for = 0;
  };

  void Spawn(uint32_t task) {
#pragma omp task firstprivate(task)
    RunTask(task);
  }

  void RunTask(uint32_t task) {
    work_();
    for (uint32_t i = first_[task]; i < first_[task + 1]; ++i) {
      Count& count = counts_[successors_[i]];
      if (count.waits_for > 1) {
        if (count.left.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        count.left.store(count.waits_for, std::memory_order_relaxed);  // for the next run
      }
      Spawn(successors_[i]);
    }
  }

  const NodeWork work_;
  const int threads_;
  std::vector<Count> counts_;                 // by task
  std::vector<uint32_t> first_, successors_;  // slices by task
  std::vector<uint32_t> sources_;
};

}  // namespace

std::unique_ptr<Policy> OpenMpPolicy(const PolicyInput& input) { return std::make_unique<OpenMp>(input); }

}  // namespace weft
