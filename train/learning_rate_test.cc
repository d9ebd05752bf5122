#include "weft/train/learning_rate.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(WarmupCosineTest, EqualsTheFormula) {
  const WarmupCosine rate = {.peak = 1e-3, .floor = 1e-4, .warmup = 100, .steps = 2000};
  const struct {
    int64_t step;
    double rate;
  } kRows[] = {
      {0, 1e-3 / 101},
      {49, 1e-3 * 50 / 101},
      {99, 1e-3 * 100 / 101},
      {100, 1e-3},                                        // the peak, at the warm-up's end
      {1050, 5.5e-4},                                     // half-way down
      {575, 1e-4 + 9e-4 * (2 + 1.4142135623730951) / 4},  // a quarter: cos(π/4)
      {2000, 1e-4},
      {5000, 1e-4},
  };
  for (const auto& row : kRows) EXPECT_NEAR(rate.At(row.step), row.rate, 1e-15) << row.step;
}

TEST(WarmupCosineTest, ShortRuns) {
  EXPECT_DOUBLE_EQ((WarmupCosine{.peak = 1, .floor = 0, .warmup = 0, .steps = 2}.At(0)), 1);
  EXPECT_DOUBLE_EQ((WarmupCosine{.peak = 1, .floor = 0, .warmup = 0, .steps = 2}.At(1)), 0.5);
  EXPECT_DOUBLE_EQ((WarmupCosine{.peak = 1, .floor = 0.5, .warmup = 10, .steps = 10}.At(10)), 0.5);
  EXPECT_DOUBLE_EQ((WarmupCosine{.peak = 11, .floor = 0.5, .warmup = 10, .steps = 4}.At(3)), 4);
}

}  // namespace
}  // namespace weft
