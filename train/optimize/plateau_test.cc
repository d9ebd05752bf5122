// tests/pytorch/pytorch_schedules_test.cc compares Plateau with PyTorch's ReduceLROnPlateau.
#include <limits>

#include "gtest/gtest.h"
#include "weft/train/optimize/learning_rate.h"

namespace weft {
namespace {

TEST(PlateauTest, WaitsForItsPatience) {
  const PlateauSettings settings = {.factor = 0.5, .patience = 1, .threshold = 0.1};
  Plateau plateau;
  EXPECT_FALSE(plateau.Observe(1, settings));
  EXPECT_FALSE(plateau.Observe(0.95, settings));  // not below 1 · (1 - 0.1)
  EXPECT_TRUE(plateau.Observe(std::numeric_limits<double>::quiet_NaN(), settings));
  EXPECT_EQ(plateau.scale, 0.5);
  EXPECT_EQ(plateau.best, 1);
  EXPECT_EQ(plateau.bad, 0);
}

TEST(PlateauTest, ChecksItsSettings) {
  EXPECT_TRUE(Validate(PlateauSettings()).ok());
  const struct {
    PlateauSettings settings;
    const char* error;
  } kRows[] = {
      {{.factor = 1}, "plateau-factor 1 is not in [0, 1)"},
      {{.patience = -1}, "plateau-patience -1 is less than 0"},
      {{.threshold = 1}, "plateau-threshold 1 is not in [0, 1)"},
      {{.min_scale = 2}, "min_scale 2 is not in [0, 1]"},
  };
  for (const auto& [settings, error] : kRows) EXPECT_EQ(Validate(settings).message(), error);
}

}  // namespace
}  // namespace weft
