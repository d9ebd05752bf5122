#include "weft/lab/machine/sharing.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(SharingTest, FiguresAreInterpolatedAndThreadsBeyondTheLastRowReachWhatTheyReachThere) {
  const SharingRow rows[] = {{.threads = 2, .flops = 20, .bytes = 4},
                             {.threads = 4, .flops = 30, .bytes = 6, .wake_seconds = 8, .moved_byte_seconds = 2}};
  EXPECT_EQ(SharingOf(rows, 1).flops, 10);
  EXPECT_EQ(SharingOf(rows, 2).flops, 20);
  EXPECT_EQ(SharingOf(rows, 3).flops, 25);
  EXPECT_EQ(SharingOf(rows, 3).bytes, 5);
  EXPECT_EQ(SharingOf(rows, 3).wake_seconds, 4);
  EXPECT_EQ(SharingOf(rows, 3).moved_byte_seconds, 1);
  EXPECT_EQ(SharingOf(rows, 8).flops, 60);
  EXPECT_EQ(SharingOf(rows, 8).bytes, 12);
  EXPECT_EQ(SharingOf(rows, 8).wake_seconds, 8);
  EXPECT_EQ(SharingOf(rows, 8).threads, 8);
}

TEST(SharingTest, AMachineReachesMoreThanNothing) {
  const std::vector<SharingRow> rows = MeasureSharing({1, 2});
  ASSERT_EQ(rows.size(), 2u);
  for (const SharingRow& row : rows) {
    EXPECT_GT(row.flops, 1e8);
    EXPECT_GT(row.bytes, 1e8);
  }
  EXPECT_EQ(rows[0].wake_seconds, 0);
  EXPECT_GT(rows[1].wake_seconds, 0);
  EXPECT_LT(rows[1].wake_seconds, 0.1);
  EXPECT_GE(rows[1].moved_byte_seconds, 0);
}

}  // namespace
}  // namespace weft
