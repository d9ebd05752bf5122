// What our executors are compared with: the same schedules under other libraries' schedulers.
#ifndef WEFT_BENCH_BASELINES_H_
#define WEFT_BENCH_BASELINES_H_

#include "weft/graph/policies/policies.h"

namespace weft {

extern const Policy kFlowGraph;  // a tbb::flow::graph: one continue_node a task
// One OpenMP task a task, created when the count of those that it waits for becomes zero. With `depend` clauses in
// place of counts it takes two to thirteen times as long.
extern const Policy kOpenMp;

}  // namespace weft

#endif  // WEFT_BENCH_BASELINES_H_
