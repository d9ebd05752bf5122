// Tests the puzzles: which patches a row hides, how patches are shuffled, and how much of the batch a draw depends on.
#include "weft/train/jobs/patch_puzzle.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

TEST(PatchPuzzleTest, HidesTheWantedNumberOfDifferentPatches) {
  const PatchPuzzle puzzle = {.task = VitTask::kMasked, .height = 8, .width = 12, .patch = 4, .hidden = 4};
  std::vector<int> counts(6);
  for (int64_t row = 0; row < 600; ++row) {
    const std::vector<int32_t> hidden = puzzle.Draw({.seed = 3}, row);
    EXPECT_EQ(std::set<int32_t>(hidden.begin(), hidden.end()).size(), 4u);
    for (const int32_t patch : hidden) ++counts[static_cast<size_t>(patch)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 400, 60);  // 5 standard deviations are 58
}

TEST(PatchPuzzleTest, ADrawDependsOnSeedStepAndRow) {
  const PatchPuzzle puzzle = {.task = VitTask::kOrder, .height = 16, .width = 16, .patch = 4};
  const std::vector<int32_t> places = puzzle.Draw({.seed = 1, .step = 2}, 3);
  EXPECT_EQ(puzzle.Draw({.seed = 1, .step = 2}, 3), places);
  EXPECT_NE(puzzle.Draw({.seed = 2, .step = 2}, 3), places);
  EXPECT_NE(puzzle.Draw({.seed = 1, .step = 3}, 3), places);
  EXPECT_NE(puzzle.Draw({.seed = 1, .step = 2}, 4), places);
  std::vector<int32_t> sorted = places;
  std::sort(sorted.begin(), sorted.end());
  for (int32_t i = 0; i < 16; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
}

TEST(PatchPuzzleTest, ShufflesPatchesAsAWhole) {
  const PatchPuzzle puzzle = {.task = VitTask::kOrder, .height = 2, .width = 6, .patch = 2};
  std::vector<float> picture = {1, 2, 3, 4,  5,  6,  //
                                7, 8, 9, 10, 11, 12};
  puzzle.Shuffle({2, 0, 1}, absl::MakeSpan(picture));
  EXPECT_THAT(picture, ElementsAre(5, 6, 1, 2, 3, 4,  //
                                   11, 12, 7, 8, 9, 10));
}

}  // namespace
}  // namespace weft
