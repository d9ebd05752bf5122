#include "weft/bench/rounds.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

// Runs rounds whose probes find these multiply-adds per second, until they end. Returns which of them count.
std::vector<bool> Counted(int wanted, const std::vector<double>& flops, std::string* report = nullptr) {
  size_t probes = 0;
  Rounds rounds(wanted, [&] { return SpeedProbe::Speed{.flops = flops.at(probes++), .read = 100}; });
  while (rounds.GoOn()) {
  }
  EXPECT_EQ(probes, flops.size());
  if (report != nullptr) *report = rounds.Report();
  return rounds.Counted();
}

TEST(RoundsTest, RoundsBesideASlowProbeDoNotCount) {
  std::string report;
  EXPECT_THAT(Counted(2, {99, 99, 90, 99, 100}, &report), ElementsAre(true, false, false, true));
  EXPECT_EQ(
      report,
      "2 of 4 rounds ran at 95% of full speed or above; slowest probe of multiply-adds: 90% of the fastest; slowest "
      "probe of reads: 100% of the fastest");
}

TEST(RoundsTest, IfFewRoundsCountThoseWithTheBestProbesAreTaken) {
  EXPECT_THAT(Counted(2, {100, 100, 50, 50, 80, 90, 80, 50, 100}),
              ElementsAre(true, false, false, false, true, true, false, false));
}

TEST(RoundsTest, ASingleFastProbeIsNotFullSpeed) {
  EXPECT_THAT(Counted(5, {100, 100, 130, 100, 100, 100}), ElementsAre(true, true, true, true, true));
  EXPECT_THAT(Counted(2, {100, 130, 100}), ElementsAre(true, true));
}

TEST(RoundsTest, WithoutAProbeEveryRoundCounts) {
  Rounds rounds(3);
  int begun = 0;
  while (rounds.GoOn()) ++begun;
  EXPECT_EQ(begun, 3);
  EXPECT_THAT(rounds.Counted(), ElementsAre(true, true, true));
}

}  // namespace
}  // namespace weft
