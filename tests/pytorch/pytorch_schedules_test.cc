// Compares schedules and Plateau with PyTorch's over 50 steps. tests/pytorch/draw_steps.py computed the rates.
#include "gtest/gtest.h"
#include "weft/tests/cases/case_file.h"
#include "weft/train/optimize/learning_rate.h"

namespace weft {
namespace {

constexpr double kRelative = 1e-9;

void ExpectNear(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], kRelative * wanted[i]) << "step " << i;
}

TEST(PytorchSchedulesTest, Rates) {
  const absl::StatusOr<CaseFile> file = CaseFile::Open("tests/pytorch/steps.bin.gz");
  ASSERT_TRUE(file.ok()) << file.status();
  int cases = 0;
  for (const Case& of : file->cases()) {
    if (of.op != "schedule") continue;
    SCOPED_TRACE(of.name);
    const RateScheduleSettings settings = {.peak = of.attributes.at("peak"),
                                           .floor = of.attributes.at("floor"),
                                           .warmup = of.attributes.at("warmup"),
                                           .steps = of.attributes.at("steps"),
                                           .decay = of.attributes.at("decay")};
    const absl::StatusOr<RateSchedule> schedule = ParseRateSchedule(of.name, settings);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    std::vector<double> rates;
    for (int64_t step = 0; step < settings.steps; ++step) rates.push_back((*schedule)(step));
    ExpectNear(rates, Doubles(*of.outputs[0]));
    ++cases;
  }
  EXPECT_EQ(cases, 8);
}

TEST(PytorchSchedulesTest, Plateau) {
  const absl::StatusOr<CaseFile> file = CaseFile::Open("tests/pytorch/steps.bin.gz");
  ASSERT_TRUE(file.ok()) << file.status();
  int cases = 0;
  for (const Case& of : file->cases()) {
    if (of.op != "plateau") continue;
    SCOPED_TRACE(of.name);
    const PlateauSettings settings = {.factor = of.attributes.at("factor"),
                                      .patience = of.attributes.at("patience"),
                                      .threshold = of.attributes.at("threshold"),
                                      .min_scale = of.attributes.at("min_scale")};
    Plateau plateau;
    std::vector<double> scales;
    for (const double metric : Doubles(*of.inputs[0])) {
      const double before = plateau.scale;
      const bool fell = plateau.Observe(metric, settings);
      EXPECT_EQ(fell, plateau.scale < before);
      scales.push_back(plateau.scale);
      plateau = {plateau.best, plateau.bad, plateau.scale};  // as a resumed training does
    }
    EXPECT_LT(scales.back(), 1);
    ExpectNear(scales, Doubles(*of.outputs[0]));
    ++cases;
  }
  EXPECT_EQ(cases, 4);
}

}  // namespace
}  // namespace weft
