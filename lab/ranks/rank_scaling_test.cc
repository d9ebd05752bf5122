#include <gtest/gtest.h>

#include <vector>

#include "weft/lab/measured.h"
#include "weft/lab/ranks/rank_step.h"
#include "weft/lab/simulate.h"

namespace weft {
namespace {

RankScalingOptions Options(double latency, double bytes_per_second) {
  return {.graph = {"charcpu"}, .network = {.latency_seconds = latency, .bytes_per_second = bytes_per_second}};
}

std::vector<RanksPrediction> PredictByCostModel(const RankScalingOptions& options, const std::vector<int>& ranks) {
  RankScaling scaling(options);
  scaling.Use(Calibration::Fit({}));
  const auto predictions = scaling.PredictAll(ranks);
  EXPECT_TRUE(predictions.ok()) << predictions.status();
  return predictions.value_or(std::vector<RanksPrediction>(ranks.size()));
}

TEST(RankScalingTest, WeakScalingFollowsTheNetwork) {
  const std::vector<int> ranks = {1, 2, 4, 8, 64, 1024};
  const auto fast = PredictByCostModel(Options(0, 1e12), ranks), slow = PredictByCostModel(Options(1e-3, 2e7), ranks);
  for (size_t i = 0; i < ranks.size(); ++i) {
    EXPECT_EQ(fast[i].ranks, ranks[i]);
    EXPECT_EQ(fast[i].micro_batches, ranks[i]);
    EXPECT_LE(fast[i].hidden, fast[i].communication);
    ASSERT_EQ(fast[i].bytes.size(), std::size(kShardingNames));
    EXPECT_GT(fast[i].bytes[0], 0);
    EXPECT_LE(fast[i].seconds, slow[i].seconds);
  }
  EXPECT_DOUBLE_EQ(fast[0].efficiency, 1);
  EXPECT_GT(fast[4].efficiency, 0.8);
  EXPECT_LT(slow[1].efficiency, 0.5);
  EXPECT_EQ(fast[0].communication, 0);
  // 810,000 weights: each rank sends 2 (N - 1)/N of 3.2 MB, one way at a time.
  EXPECT_GT(slow[4].communication, 2 * 63 / 64.0 * 3.2e6 / 2e7);
}

TEST(RankScalingTest, StrongScalingSaturates) {
  RankScalingOptions options = Options(50e-3, 1e10);
  options.micro_batches = 16;
  const auto predictions = PredictByCostModel(options, {1, 2, 4, 16});
  int saturated = 0;
  for (const RanksPrediction& each : predictions) {
    EXPECT_EQ(each.micro_batches, 16);
    saturated += each.saturated;
  }
  EXPECT_EQ(saturated, 1);
  EXPECT_FALSE(predictions[0].saturated);
}

// If the number of ranks is a power of two, all ranks are alike. So one rank with its mirror images takes about the
// time of all ranks. Only values that share bytes make ranks wait in ways that mirror images do not show.
TEST(RankScalingTest, MirrorImagesStandForEqualRanks) {
  const Network network = {.latency_seconds = 1e-4, .bytes_per_second = 1e9};
  GroupCosts costs(Calibration::Fit({}));
  std::vector<Graph> graphs;
  std::vector<std::vector<TaskCost>> task_costs;
  std::vector<SimulatedRank> ranks;
  task_costs.reserve(4);
  graphs.reserve(4);
  for (int rank = 0; rank < 4; ++rank) {
    auto step = RankStep::Plan({.graph = {"charcpu"}, .rank = rank, .ranks = 4, .micro_batches = 4});
    ASSERT_TRUE(step.ok()) << step.status();
    const Graph& graph = graphs.emplace_back(WithoutReuse((*step)->graph_with_messages()));
    std::vector<TaskCost>& tasks = task_costs.emplace_back();
    for (const double seconds : costs.TaskSeconds(graph)) tasks.push_back({.seconds = seconds});
    ranks.push_back({.rank = rank,
                     .schedule = &graph.compiled().schedule,
                     .costs = tasks,
                     .messages = MessagesOf(graph.compiled())});
  }
  const double all = SimulateRanks(ranks, network, kCriticalPath, {}).makespan;
  for (const SimulatedRank& rank : ranks) {
    EXPECT_NEAR(SimulateRanks({rank}, network, kCriticalPath, {}).makespan / all, 1, 0.05) << rank.rank;
  }
}

TEST(RankScalingTest, WithoutReuseOfBytesNoStepIsSlower) {
  RankScalingOptions options = Options(0, 1e12);
  const double waits = PredictByCostModel(options, {2})[0].seconds;
  options.reuse = false;
  EXPECT_LE(PredictByCostModel(options, {2})[0].seconds, 1.01 * waits);
}

TEST(RankScalingTest, ShardingDividesMemory) {
  RankScalingOptions options = Options(1e-4, 1e9);
  options.graph.name = "babygpt";
  options.sharding = Sharding::kOptimizer;
  const auto predictions = PredictByCostModel(options, {1, 2, 8});
  const auto saved = [&](size_t i) { return predictions[i].bytes[0] - predictions[i].bytes[1]; };
  EXPECT_EQ(saved(0), 0);
  EXPECT_GT(saved(1), 0);
  EXPECT_GT(saved(2), 6 * 10.7e6);  // most of the two moments of 10.7 million weights
  for (const RanksPrediction& each : predictions) EXPECT_LE(each.bytes[2], each.bytes[1]);
  EXPECT_LT(predictions[2].bytes[3], predictions[2].bytes[2]);
  EXPECT_GT(predictions[2].communication, 0);
}

TEST(RankScalingTest, MeasuresAndRunsRanksInThisProcess) {
  RankScalingOptions options = Options(1e-3, 1e9);
  options.runs = 1;
  options.ranks_per_machine = 2;
  RankScaling scaling(options);
  ASSERT_TRUE(scaling.Measure().ok());
  const auto predicted = scaling.Predict(2);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  const auto measured = scaling.MeasureRanks(2);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_GT(*measured, 4e-3);
  EXPECT_GT(predicted->seconds, 4e-3);
}

}  // namespace
}  // namespace weft
