#include "weft/train/learning_rate.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

RateSchedule Named(const char* name, const RateScheduleSettings& settings) {
  return MakeRateSchedule(*FindRateSchedule(name), settings);
}

TEST(RateScheduleTest, EqualsTheFormula) {
  const RateScheduleSettings settings = {.peak = 1e-3, .floor = 1e-4, .warmup = 100, .steps = 2000};
  const struct {
    const char* name;
    int64_t step;
    double rate;
  } kRows[] = {
      {"cosine", 0, 1e-3 / 101},
      {"cosine", 49, 1e-3 * 50 / 101},
      {"cosine", 99, 1e-3 * 100 / 101},
      {"cosine", 100, 1e-3},                                        // the peak, at the end of the warm-up
      {"cosine", 1050, 5.5e-4},                                     // half-way down
      {"cosine", 575, 1e-4 + 9e-4 * (2 + 1.4142135623730951) / 4},  // a quarter: cos(π/4)
      {"cosine", 2000, 1e-4},
      {"cosine", 5000, 1e-4},
      {"linear", 49, 1e-3 * 50 / 101},
      {"linear", 100, 1e-3},
      {"linear", 575, 1e-4 + 9e-4 * 0.75},
      {"linear", 5000, 1e-4},
      {"constant", 49, 1e-3 * 50 / 101},
      {"constant", 100, 1e-3},
      {"constant", 5000, 1e-3},
  };
  for (const auto& row : kRows) {
    EXPECT_NEAR(Named(row.name, settings)(row.step), row.rate, 1e-15) << row.name << " " << row.step;
  }
}

TEST(RateScheduleTest, ShortRuns) {
  EXPECT_DOUBLE_EQ(Named("cosine", {.peak = 1, .floor = 0, .warmup = 0, .steps = 2})(0), 1);
  EXPECT_DOUBLE_EQ(Named("cosine", {.peak = 1, .floor = 0, .warmup = 0, .steps = 2})(1), 0.5);
  EXPECT_DOUBLE_EQ(Named("cosine", {.peak = 1, .floor = 0.5, .warmup = 10, .steps = 10})(10), 0.5);
  EXPECT_DOUBLE_EQ(Named("cosine", {.peak = 11, .floor = 0.5, .warmup = 10, .steps = 4})(3), 4);
}

TEST(RateScheduleTest, FindsByName) {
  for (const RateScheduleRow& row : RateSchedules()) EXPECT_EQ(FindRateSchedule(row.name), &row);
  EXPECT_EQ(FindRateSchedule("none"), nullptr);
}

}  // namespace
}  // namespace weft
