#include <gtest/gtest.h>

#include <numeric>

#include "weft/distributed/message_ops.h"
#include "weft/graph/compile/compile.h"
#include "weft/lab/ranks/rank_step.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

double Sum(const std::vector<double>& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

TEST(GroupCostsTest, EqualGroupsTakeTheMeasuredTime) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {64, 64}}), y = tape.Input("y", {kF32, {64, 64}}),
            large = tape.Input("large", {kF32, {640, 64}});
  const absl::StatusOr<Graph> product = Compile(tape, {.fetch = {MatMul(x, x)}});
  const absl::StatusOr<Graph> two = Compile(tape, {.fetch = {MatMul(x, y), MatMul(y, x)}});
  const absl::StatusOr<Graph> other = Compile(tape, {.fetch = {MatMul(large, x)}});
  ASSERT_TRUE(product.ok() && two.ok() && other.ok());
  GroupCosts costs;
  for (const int64_t nanoseconds : {1000, 3000}) {
    costs.Add(*product, std::vector<TileTime>(product->compiled().tiles.size(), {.end = nanoseconds}));
  }
  EXPECT_NEAR(Sum(costs.TaskSeconds(*product)), 2e-6, 1e-12);
  EXPECT_NEAR(Sum(costs.TaskSeconds(*two)), 4e-6, 1e-12);
  // A product of ten times the size was not measured: the calibration estimates it.
  EXPECT_GT(Sum(costs.TaskSeconds(*other)), 0);
  EXPECT_NE(Sum(costs.TaskSeconds(*other)), 2e-6);
}

TEST(GroupCostsTest, MessagesTakeNoTimeOfWorkers) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {64, 64}});
  const absl::StatusOr<Graph> graph = Compile(tape, {.update = {Send(x, {0, 64}, {.peer = 1, .tag = 6})}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  GroupCosts costs(Calibration::Fit({}));
  EXPECT_EQ(Sum(costs.TaskSeconds(*graph)), 0);
}

}  // namespace
}  // namespace weft
