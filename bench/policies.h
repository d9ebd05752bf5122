// Policies: ways to run a graph of tasks, each task once, after those that it waits for.
#ifndef WEFT_BENCH_POLICIES_H_
#define WEFT_BENCH_POLICIES_H_

#include <memory>

#include "weft/bench/node_work.h"
#include "weft/bench/task_graphs.h"
#include "weft/graph/schedule.h"

namespace weft {

class Policy {
 public:
  virtual ~Policy() = default;
  virtual void Run() = 0;
};

// What a policy is made of; it outlives the policy.
struct PolicyInput {
  const TaskGraph* graph = nullptr;
  const Schedule* schedule = nullptr;  // of the graph
  NodeWork work;
  int threads = 1;
};

std::unique_ptr<Policy> SerialPolicy(const PolicyInput& input);        // our executor on one thread
std::unique_ptr<Policy> CriticalPathPolicy(const PolicyInput& input);  // our executor
std::unique_ptr<Policy> FlowGraphPolicy(const PolicyInput& input);     // a tbb::flow::graph: one continue_node a task
// One OpenMP task a task, created when the count of those that it waits for becomes zero. With `depend` clauses in
// place of counts it takes two to thirteen times as long.
std::unique_ptr<Policy> OpenMpPolicy(const PolicyInput& input);

}  // namespace weft

#endif  // WEFT_BENCH_POLICIES_H_
