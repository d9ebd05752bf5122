#include "weft/graph/compile/free_ranges.h"

#include <limits>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr double kAnyTime = std::numeric_limits<double>::infinity();

TEST(FreeRangesTest, TakesTheSmallestThatIsDoneInTime) {
  FreeRanges free;
  EXPECT_EQ(free.Allocate(100, 0, false, 0), 0u);
  EXPECT_EQ(free.Allocate(10, 0, false, 0), 100u);
  EXPECT_EQ(free.Allocate(50, 0, false, 0), 110u);
  EXPECT_EQ(free.Allocate(10, 0, false, 0), 160u);
  free.Release(0, 100, 1);
  free.Release(110, 50, 5);
  EXPECT_EQ(free.Allocate(40, kAnyTime, false, 0), 110u);  // the smallest
  free.Release(110, 40, 6);
  EXPECT_EQ(free.Allocate(40, 2, false, 0), 0u);  // the one that is done
  EXPECT_EQ(free.Done(0, 40), 1);
  EXPECT_EQ(free.Allocate(60, 0.5, false, 0), 40u);  // no users are done by then: the range whose users are done first
  EXPECT_EQ(free.Allocate(50, 0.5, false, 1000), 170u);  // or a longer arena
  EXPECT_EQ(free.Allocate(50, 0.5, false, 0), 110u);
  EXPECT_EQ(free.Done(110, 50), 6);
  EXPECT_EQ(free.end(), 220u);
}

TEST(FreeRangesTest, KnowsWhenUsersFinishAfterReleasesAtZero) {
  FreeRanges free;
  free.Allocate(100, 0, false, 0);
  free.Release(0, 50, 0);
  EXPECT_EQ(free.Done(0, 100), 0);
  free.Release(50, 20, 3);
  EXPECT_EQ(free.Done(0, 50), 0);
  EXPECT_EQ(free.Done(40, 20), 3);
  EXPECT_EQ(free.Done(70, 30), 0);
}

TEST(FreeRangesTest, LeavesLargerRangesAloneWhereOneHasTheVerySize) {
  FreeRanges free;
  free.Allocate(100, 0, false, 0);
  free.Allocate(10, 0, false, 0);
  free.Allocate(40, 0, false, 0);
  free.Allocate(10, 0, false, 0);
  free.Release(0, 100, 1);
  free.Release(110, 40, 5);
  EXPECT_EQ(free.Allocate(40, 2, true, 0), 110u);
  EXPECT_EQ(free.Allocate(40, 2, true, 0), 0u);
}

TEST(FreeRangesTest, WhatIsTakenNeverOverlapsAndNeighboursMerge) {
  std::mt19937 random(1);
  FreeRanges free;
  std::map<size_t, size_t> taken;
  std::map<size_t, double> done;  // by byte
  for (int i = 0; i < 20'000; ++i) {
    if (taken.size() > 20 || (!taken.empty() && random() % 2 == 0)) {
      auto it = taken.begin();
      std::advance(it, random() % taken.size());
      for (size_t b = it->first; b < it->first + it->second; ++b) done[b] = i;
      free.Release(it->first, it->second, i);
      taken.erase(it);
      continue;
    }
    const size_t bytes = 1 + random() % 30;
    const size_t offset =
        free.Allocate(bytes, i - static_cast<double>(random() % 40), random() % 2 == 0, random() % 500);
    const auto next = taken.lower_bound(offset);
    ASSERT_TRUE(next == taken.end() || offset + bytes <= next->first);
    ASSERT_TRUE(next == taken.begin() || std::prev(next)->first + std::prev(next)->second <= offset);
    ASSERT_LE(offset + bytes, free.end());
    double latest = 0;
    for (size_t b = offset; b < offset + bytes; ++b) latest = std::max(latest, done[b]);
    ASSERT_EQ(free.Done(offset, bytes), latest);
    taken[offset] = bytes;
  }
  for (const auto& [offset, bytes] : taken) free.Release(offset, bytes, 0);
  EXPECT_EQ(free.Allocate(free.end(), kAnyTime, false, 0), 0u);
  EXPECT_LT(free.end(), 1500u);
}

}  // namespace
}  // namespace weft
