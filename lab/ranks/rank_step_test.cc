#include "weft/lab/ranks/rank_step.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weft/distributed/in_process.h"
#include "weft/lab/measured.h"

namespace weft {
namespace {

// Returns the executions in a step: of graphs without messages and with messages.
std::pair<double, double> Runs(const RankStep& step) {
  std::pair<double, double> runs;
  for (const RankStep::Part& part : step.parts()) (part.has_messages ? runs.second : runs.first) += part.runs;
  return runs;
}

TEST(RankStepTest, PlansEachRankAlone) {
  for (const auto& [rank, ranks, micro_batches, alone, with_messages] :
       {std::tuple{0, 1, 1, 1.0, 0.0},  // one graph
        {0, 1, 4, 6.0, 0.0},            // four micro-batches, a sum of two pairs, the update
        {0, 2, 2, 1.0, 1.0},            // the update
        {1, 64, 64, 1.0, 1.0},          //
        {0, 2, 5, 3.0 + 1, 1.0}}) {     // three micro-batches, the last one with messages; a sum, the update
    SCOPED_TRACE(std::to_string(rank) + " of " + std::to_string(ranks) + ", " + std::to_string(micro_batches));
    const auto step =
        RankStep::Plan({.graph = {"towers"}, .rank = rank, .ranks = ranks, .micro_batches = micro_batches});
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(Runs(**step).second, with_messages);
    EXPECT_GE(Runs(**step).first, 1);
    EXPECT_LE(Runs(**step).first, alone);
    EXPECT_EQ(MessagesOf((*step)->graph_with_messages().compiled()).empty(), ranks == 1);
    EXPECT_GT((*step)->bytes(), 0);
  }
  EXPECT_FALSE(RankStep::Plan({.graph = {"towers"}, .rank = 2, .ranks = 2, .micro_batches = 2}).ok());
  EXPECT_FALSE(RankStep::Plan({.graph = {"towers"}, .ranks = 2, .micro_batches = 1}).ok());
  EXPECT_FALSE(RankStep::Plan({.graph = {"minilm-forward"}}).ok());
}

TEST(RankStepTest, RunsWithImaginaryAndWithRealPeers) {
  const auto check = [](Transport* transport) {
    const auto step = RankStep::Plan({.graph = {"charcpu"},
                                      .rank = transport == nullptr ? 0 : transport->rank(),
                                      .ranks = 2,
                                      .micro_batches = 4,
                                      .transport = transport});
    ASSERT_TRUE(step.ok()) << step.status();
    const auto seconds = (*step)->Run(/*runs=*/1);
    ASSERT_TRUE(seconds.ok()) << seconds.status();
    ASSERT_EQ(seconds->size(), 1u);
    double tiles = 0;
    for (const RankStep::Part& part : (*step)->parts()) {
      ASSERT_EQ((*step)->tiles(part).size(), (*step)->graph(part).compiled().tiles.size());
      for (const TileTime& tile : (*step)->tiles(part)) tiles += tile.worker < 0 ? 0 : (tile.end - tile.begin) * 1e-9;
    }
    EXPECT_GT(tiles, 0);
    EXPECT_LT(tiles, (*seconds)[0]);  // graphs that run several times count once
  };
  check(nullptr);
  RunRanks(2, check);
}

}  // namespace
}  // namespace weft
