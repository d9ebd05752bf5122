#include "weft/train/jobs/scheduled_sampling.h"

#include <cmath>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(ScheduledSamplingTest, FollowsThePublishedDecays) {
  EXPECT_EQ((ScheduledSampling{.schedule = "none"}.At(5)), 0);
  EXPECT_EQ((ScheduledSampling{.schedule = "constant", .rate = 0.3}.At(5)), 0.3);
  const ScheduledSampling linear = {.schedule = "linear", .rate = 0.5, .steps = 100};
  EXPECT_EQ(linear.At(0), 0);
  EXPECT_DOUBLE_EQ(linear.At(50), 0.25);
  EXPECT_EQ(linear.At(100000), 0.5);
  const ScheduledSampling sigmoid = {.schedule = "inverse-sigmoid", .rate = 1, .steps = 200};
  for (const int64_t step : {0, 1, 700, 1060, 3000}) {
    const double k = 200;
    EXPECT_NEAR(sigmoid.At(step), 1 - k / (k + std::exp(static_cast<double>(step) / k)), 1e-12) << step;
  }
  EXPECT_NEAR(sigmoid.At(static_cast<int64_t>(200 * std::log(200))), 0.5, 1e-3);
  EXPECT_EQ(sigmoid.At(int64_t{1} << 40), 1);
}

}  // namespace
}  // namespace weft
