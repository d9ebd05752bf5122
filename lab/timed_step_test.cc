#include "weft/lab/timed_step.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft {
namespace {

TEST(TimedStepTest, TimesEveryTileOfItsLastRun) {
  absl::StatusOr<TimedStep> step = TimedStep::Create({.graph = {"towers"}, .threads = 2});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->threads(), 2);
  ASSERT_TRUE(step->Run(/*runs=*/2).ok());
  ASSERT_EQ(step->tiles().size(), step->graph().compiled().tiles.size());
  for (const TileTime& tile : step->tiles()) EXPECT_LE(tile.begin, tile.end);
  EXPECT_GT(step->seconds(), 0);
  EXPECT_GT(step->utilization(), 0);
  EXPECT_LE(step->utilization(), 1);
  const auto ratios = step->TimingOverhead(/*pairs=*/3);
  ASSERT_TRUE(ratios.ok()) << ratios.status();
  EXPECT_EQ(ratios->size(), 3u);
  EXPECT_TRUE(std::is_sorted(ratios->begin(), ratios->end()));
}

TEST(TimedStepTest, TheSerialPolicyHasOneWorker) {
  const absl::StatusOr<TimedStep> step = TimedStep::Create({.graph = {"towers"}, .policy = &kSerial, .threads = 2});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->threads(), 1);
}

}  // namespace
}  // namespace weft
