#include "weft/train/optimize/learning_rate.h"

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

TEST(RateScheduleTest, WarmupStableDecayDecaysForAFractionOrANumberOfSteps) {
  for (const double decay : {0.25, 10.0}) {
    const RateSchedule rate = Named("wsd", {.peak = 1, .floor = 0, .warmup = 4, .steps = 40, .decay = decay});
    EXPECT_EQ(rate(4), 1);
    EXPECT_EQ(rate(30), 1);
    EXPECT_DOUBLE_EQ(rate(31), 0.9);
    EXPECT_DOUBLE_EQ(rate(39), 0.1);
    EXPECT_EQ(rate(40), 0);
  }
}

TEST(RateScheduleTest, NeverBelowTheFloor) {
  EXPECT_DOUBLE_EQ(Named("inverse-sqrt", {.peak = 1, .floor = 0.25, .warmup = 0})(3), 0.5);
  EXPECT_DOUBLE_EQ(Named("inverse-sqrt", {.peak = 1, .floor = 0.25, .warmup = 0})(99), 0.25);
}

TEST(RateScheduleTest, JoinsParts) {
  const absl::StatusOr<RateSchedule> joined =
      ParseRateSchedule("linear:4, constant", {.peak = 1, .floor = 0, .warmup = 0, .steps = 8});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ((*joined)(0), 1);
  EXPECT_EQ((*joined)(3), 0.25);
  EXPECT_EQ((*joined)(4), 1);
  EXPECT_EQ((*joined)(9), 1);  // the last part continues
  // A second part with a number of steps continues, too.
  const absl::StatusOr<RateSchedule> parsed =
      ParseRateSchedule("constant:4, linear:4", {.peak = 1, .floor = 0, .warmup = 1, .steps = 8});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ((*parsed)(0), 0.5);
  EXPECT_EQ((*parsed)(4), 1);
  EXPECT_EQ((*parsed)(7), 0.25);
  EXPECT_EQ((*parsed)(9), 0);
}

TEST(RateScheduleTest, Errors) {
  const struct {
    const char *text, *error;
  } kRows[] = {
      {"cosin", "schedule: there is no 'cosin', did you mean 'cosine'?"},
      {"", "schedule: there is no ''"},
      {"cosine:", "schedule: 'cosine:' has no number of steps after ':'"},
      {"cosine:0", "schedule: 'cosine:0' has no number of steps after ':'"},
      {"cosine,linear", "schedule: 'cosine' lacks its number of steps, as in 'cosine:100'"},
      {"linear:5,plateau", "schedule: 'plateau' can't be one of several parts"},
  };
  for (const auto& [text, error] : kRows) {
    EXPECT_EQ(ParseRateSchedule(text, {}).status().message(), error);
  }
  EXPECT_EQ(ParseRateSchedule("cosine", {.peak = 1, .floor = 2}).status().message(),
            "schedule: the minimum learning rate 2 is more than the highest, 1");
}

TEST(RateScheduleTest, LengthsMustFitTheTraining) {
  const RateScheduleSettings settings = {.warmup = 10, .steps = 50};
  const struct {
    const char* text;
    RateScheduleSettings settings;
    const char* error;
  } kRows[] = {
      {"cosine", {.warmup = 50, .steps = 50}, ""},
      {"cosine",
       {.warmup = 51, .steps = 50},
       "warmup-steps: the warm-up of 51 steps is longer than the training of 50 steps"},
      {"cosine:50", settings, ""},
      {"warmup:5,cosine", settings, ""},  // this part is the warm-up
      {"constant:10,cosine", settings, ""},
      {"constant:9,cosine", settings,
       "schedule: the warm-up of 10 steps is longer than the part 'constant' of 9 steps"},
      {"constant:50,cosine", settings,
       "schedule: 'constant:50,cosine' has no step left for 'cosine' in a training of 50 steps"},
      {"constant:30,cosine:30", settings,
       "schedule: the parts of 'constant:30,cosine:30' take 60 steps, more than the training's 50"},
      {"cosin", settings, "schedule: there is no 'cosin', did you mean 'cosine'?"},
  };
  for (const auto& row : kRows) EXPECT_EQ(CheckLengths(row.text, row.settings).message(), row.error) << row.text;
}

TEST(RateScheduleTest, FindsByName) {
  for (const RateScheduleRow& row : RateSchedules()) EXPECT_EQ(FindRateSchedule(row.name), &row);
  EXPECT_EQ(FindRateSchedule("none"), nullptr);
}

}  // namespace
}  // namespace weft
