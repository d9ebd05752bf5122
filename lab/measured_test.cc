#include "weft/lab/measured.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/lab/calibration.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Returns the seconds of the longest path by the cost model.
double PathSeconds(const Graph& graph) {
  return FindCriticalPath(graph.compiled().schedule, Calibration::Fit({}).TaskSeconds(graph)).seconds;
}

// A training step of a deep chain of products. In the backward pass the chain doesn't wait for the weights' gradients,
// unless it reuses the bytes that they read.
TEST(MeasuredTest, ReuseOfBytesHardlyMakesTheLongestPathLonger) {
  Tape tape;
  Var y = tape.Input("x", {kF32, {384, 128}});
  VarList weights;
  for (int i = 0; i < 24; ++i) {
    weights.push_back(tape.Parameter("w" + std::to_string(i), {kF32, {128, 128}}, Gaussian(0.15f)));
    y = Gelu(MatMul(y, weights.back()));
  }
  const Var loss = Mean(y * y);
  const VarList gradients = Gradient(loss, weights);
  VarList updates;
  for (size_t i = 0; i < weights.size(); ++i) updates.push_back(Assign(weights[i], weights[i] - 0.01 * gradients[i]));
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss}, .update = {updates.begin(), updates.end()}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Graph free = WithoutReuse(*graph);
  EXPECT_EQ(free.compiled().calls.size(), graph->compiled().calls.size());
  EXPECT_LT(free.compiled().schedule.successors.size(), graph->compiled().schedule.successors.size());
  EXPECT_LE(PathSeconds(free), PathSeconds(*graph) + 1e-12);
  // Parts of tasks are short, so that a wait is a larger fraction of the path.
  EXPECT_LE(PathSeconds(*graph), 1.15 * PathSeconds(free));
  const MemoryFigures& memory = graph->compiled().memory;
  EXPECT_LE(static_cast<double>(memory.planned), 1.2 * static_cast<double>(memory.lower_bound));

  // Under a memory budget, reuse takes precedence.
  const absl::StatusOr<Graph> tight =
      Compile(tape, {.fetch = {loss}, .update = {updates.begin(), updates.end()}, .memory_budget = memory.planned - 1});
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_LT(tight->compiled().memory.planned, memory.planned);
}

TEST(MeasuredTest, MediansAreOfEachTileAndSumUpToTasksAndKernelCalls) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {512, 512}});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {Sum(MatMul(x, x))}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const CompiledGraph& compiled = graph->compiled();
  RunTimes times;
  for (int64_t run : {3, 1, 2}) {
    std::vector<TileTime> tiles(compiled.tiles.size());
    for (TileTime& tile : tiles) tile = {.begin = 7, .end = 7 + run * 1000};
    times.Add(tiles);
  }
  EXPECT_EQ(times.runs(), 3);
  double tasks = 0, calls = 0;
  for (double seconds : TaskSeconds(*graph, times.tiles())) tasks += seconds;
  for (double seconds : CallSeconds(*graph, times.tiles())) calls += seconds;
  EXPECT_NEAR(tasks, 2e-6 * static_cast<double>(compiled.tiles.size()), 1e-12);
  EXPECT_NEAR(calls, tasks, 1e-12);
}

TEST(MeasuredTest, OnlyWhatAnotherGroupWroteIsMoved) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {512, 512}});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {Sum(MatMul(MatMul(x, x), x))}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  constexpr double kMatrix = 512 * 512 * sizeof(float);
  double memory = 0, moved = 0;
  for (const CallBytes& bytes : BytesOfCalls(*graph, kCacheBytes)) memory += bytes.memory, moved += bytes.moved;
  EXPECT_GE(memory, 3 * kMatrix);  // x, and the two products
  EXPECT_LT(memory, 3.1 * kMatrix);
  EXPECT_GE(moved, kMatrix);  // the first product; the sum reads the second one in the same group or another
  EXPECT_LE(moved, 2.1 * kMatrix);
  double of_tasks = 0;
  const std::vector<double> seconds(graph->compiled().tasks.size(), 1.0);
  for (const TaskCost& cost : TaskCosts(*graph, seconds, kCacheBytes)) of_tasks += cost.cached;
  EXPECT_DOUBLE_EQ(of_tasks, moved);
  for (const CallBytes& bytes : BytesOfCalls(*graph, /*cache=*/-1)) EXPECT_EQ(bytes.moved, 0);
}

TEST(MeasuredTest, SharesOfTilesFollowTheirSizes) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {1100, 700}});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {Exp(x)}, .tile_seconds = 1e-5});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const CompiledGraph& compiled = graph->compiled();
  ASSERT_GT(compiled.tiles.size(), 1u);
  const std::vector<double> shares = TileShares(*graph);
  for (size_t t = 0; t < shares.size(); ++t) {
    EXPECT_DOUBLE_EQ(shares[t],
                     static_cast<double>(compiled.tiles[t].rows() * compiled.tiles[t].cols()) / (1100 * 700));
  }
}

}  // namespace
}  // namespace weft
