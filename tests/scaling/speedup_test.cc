// Holds the speedup of each named graph by the cost model: at most, its work divided by its longest path, and on 16, 32
// and 64 simulated workers.
#include "weft/graph/compile/speedup.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/lab/real_graphs.h"
#include "weft/lab/simulate.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

TEST(SpeedupTest, TheMaximumSpeedupOfEachGraphHolds) {
  // The path of the towers is a deep chain of small products, and that of the LSTM a chain over 64 tokens.
  const struct {
    const char* name;
    double ratio;
    double on_16, on_32, on_64;
  } rows[] = {
      {"gpt2", 140, 15.2, 29, 51},    {"bert", 200, 15.5, 30.5, 58},          {"babygpt", 65, 15, 26.5, 45.5},
      {"charcpu", 16, 11.5, 15, 16},  {"minilm-forward", 64, 13.8, 24.5, 40}, {"transformer", 93, 15.3, 28.4, 48.5},
      {"towers", 6.8, 6.8, 6.8, 6.8}, {"lstm", 16, 9.5, 12.7, 14.6},          {"encoder", 26, 12.7, 19.8, 23.8}};
  ASSERT_EQ(RealGraphNames().size(), std::size(rows));
  for (const auto& [name, ratio, on_16, on_32, on_64] : rows) {
    const absl::StatusOr<std::unique_ptr<RealGraph>> real = RecordGraph({.name = name});
    ASSERT_TRUE(real.ok()) << real.status();
    const absl::StatusOr<Graph> graph = Compile(*(*real)->tape, (*real)->options);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const GraphSpeedup speedup = SpeedupOf(*graph);
    EXPECT_GE(speedup.ratio(), ratio) << name << "; see weft graph --explain";
    const Schedule& schedule = graph->compiled().schedule;
    std::vector<TaskCost> costs;
    for (uint32_t t = 0; t < schedule.task_count; ++t) costs.push_back({.seconds = schedule.seconds[t]});
    std::printf("%-14s at most %5.1f;", name, speedup.ratio());
    for (const auto& [workers, least] : {std::pair{16, on_16}, {32, on_32}, {64, on_64}}) {
      const SimulatedMachine machine = {.workers = workers};
      const double seconds = Simulate(schedule, costs, kCriticalPath, machine).makespan;
      EXPECT_GE(speedup.work / seconds, least) << name << " on " << workers << " workers";
      std::printf(" on %d: %4.1f, %.3f of the bound;", workers, speedup.work / seconds,
                  seconds / MakespanBound(schedule, costs, machine));
    }
    std::printf("\n");
  }
}

// `chains` chains of `depth` squares of a matrix. Each product waits for the whole one before it.
absl::StatusOr<Graph> Chains(int chains, int depth) {
  Tape tape;
  VarList fetched;
  for (int c = 0; c < chains; ++c) {
    Var x = tape.Input("x" + std::to_string(c), {kF32, {64, 64}});
    for (int i = 0; i < depth; ++i) x = MatMul(x, x);
    fetched.push_back(x);
  }
  return Compile(tape, {.fetch = fetched});
}

TEST(SpeedupTest, AGraphIsWorthAsManyWorkersAsHaveWork) {
  const absl::StatusOr<Graph> chain = Chains(1, 20), four = Chains(4, 20), many = Chains(200, 2);
  ASSERT_TRUE(chain.ok() && four.ok() && many.ok());
  EXPECT_EQ(UsefulWorkers(*chain, 16), 1);
  EXPECT_EQ(UsefulWorkers(*four, 2), 2);
  EXPECT_GE(UsefulWorkers(*four, 64), 4);
  EXPECT_LE(UsefulWorkers(*four, 64), 32);
  EXPECT_EQ(UsefulWorkers(*many, 48), 48);
  // Eight workers divide this product, and fewer do not.
  Tape tape;
  const Var x = tape.Input("x", {kF32, {128, 4096}}), w = tape.Input("w", {kF32, {4096, 256}});
  const absl::StatusOr<Graph> product = Compile(tape, {.fetch = {MatMul(x, w)}});
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(UsefulWorkers(*product, 4), 1);
  EXPECT_GE(UsefulWorkers(*product, 16), 8);
}

}  // namespace
}  // namespace weft
