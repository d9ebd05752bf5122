#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/inference/measure/metrics.h"

namespace weft {
namespace {

// Expected values are those of scipy 1.17.1: stats.pearsonr(x, y)[0] and stats.spearmanr(x, y)[0].
TEST(CorrelationTest, AgreesWithScipy) {
  const struct {
    std::vector<double> x, y;
    double pearson, spearman;
  } kCases[] = {
      {{1, 2, 3, 4, 5}, {2, 1, 4, 3, 5}, 0.8, 0.7999999999999999},
      {{0.5, 0.5, 1, 2.5, 2.5, 2.5, 9}, {1, 2, 2, 2, 7, 7, 6}, 0.5518912046531755, 0.7058823529411764},
      {{1000001, 1000002, 1000004, 1000003}, {-1, -2, -4.5, -3}, -0.9943767126843689, -1.0},
  };
  for (const auto& [x, y, pearson, spearman] : kCases) {
    EXPECT_NEAR(PearsonCorrelation(x, y), pearson, 1e-14);
    EXPECT_NEAR(SpearmanCorrelation(x, y), spearman, 1e-14);
  }
}

TEST(CorrelationTest, RanksOfEqualValuesAreTheirMean) {
  EXPECT_THAT(RankValues({3, 1, 3, 7, 3}), testing::ElementsAre(3, 1, 3, 5, 3));
}

TEST(CorrelationTest, ConstantsHaveNoCorrelation) {
  EXPECT_TRUE(std::isnan(PearsonCorrelation({1, 1, 1}, {1, 2, 3})));
  EXPECT_TRUE(std::isnan(SpearmanCorrelation({1, 2, 3}, {5, 5, 5})));
  EXPECT_TRUE(std::isnan(SpearmanCorrelation({1, 2, 3}, {5, std::nan(""), 6})));
  EXPECT_TRUE(std::isnan(PearsonCorrelation({1}, {2})));
}

}  // namespace
}  // namespace weft
