#include "weft/inference/runtime/runtime.h"

#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::_;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST(GraphSizeTest, RoundsUpToFewSizes) {
  std::vector<int64_t> powers, finer;
  for (const int64_t n : {0, 1, 3, 5, 9, 48, 65}) powers.push_back(GraphSize(n));
  for (const int64_t n : {1, 4, 5, 9, 13, 17, 25}) finer.push_back(GraphSize(n, /*step=*/4, /*finer=*/true));
  EXPECT_THAT(powers, ElementsAre(1, 1, 4, 8, 16, 64, 128));
  EXPECT_THAT(finer, ElementsAre(4, 4, 8, 12, 16, 24, 32));
  EXPECT_EQ(GraphSize(17, /*step=*/16), 32);
}

// Counts how often the graph of each size is recorded.
struct CountedGraph {
  absl::Status Record(int size, std::map<int, int>* counts) {
    ++(*counts)[size];
    return absl::OkStatus();
  }
};

TEST(GraphCacheTest, TheLeastRecentlyUsedOfAHundredGraphsMakesRoom) {
  GraphCache<int, CountedGraph> graphs;
  std::map<int, int> counts;
  const auto get = [&](int size) { EXPECT_TRUE(graphs.Get(size, &counts).ok()) << size; };
  for (int size = 0; size < 100; ++size) get(size);
  for (const int size : {0, 100}) get(size);  // 100 takes the place of 1
  for (const int size : {0, 2, 99, 100}) get(size);
  EXPECT_THAT(counts, Each(Pair(_, 1)));
  get(1);  // takes the place of 3
  EXPECT_EQ(counts[1], 2);
  for (const int size : {0, 2, 99, 100}) get(size);
  get(3);
  EXPECT_EQ(counts[3], 2);
  for (const int size : {0, 2, 99, 100}) EXPECT_EQ(counts[size], 1) << size;
}

}  // namespace
}  // namespace weft
