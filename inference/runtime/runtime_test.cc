#include "weft/inference/runtime/runtime.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

TEST(GraphSizeTest, RoundsUpToFewSizes) {
  std::vector<int64_t> powers, finer;
  for (const int64_t n : {0, 1, 3, 5, 9, 48, 65}) powers.push_back(GraphSize(n));
  for (const int64_t n : {1, 4, 5, 9, 13, 17, 25}) finer.push_back(GraphSize(n, /*step=*/4, /*finer=*/true));
  EXPECT_THAT(powers, ElementsAre(1, 1, 4, 8, 16, 64, 128));
  EXPECT_THAT(finer, ElementsAre(4, 4, 8, 12, 16, 24, 32));
  EXPECT_EQ(GraphSize(17, /*step=*/16), 32);
}

}  // namespace
}  // namespace weft
