#include "weft/bench/turns.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(TurnsTest, EachWayHasOneTurnARound) {
  std::vector<size_t> order;
  std::vector<std::function<absl::StatusOr<Turn>()>> ways;
  for (size_t way = 0; way < 12; ++way) {
    ways.push_back([&order, way]() -> absl::StatusOr<Turn> {
      order.push_back(way);
      return Turn{.seconds = 1e-9 * static_cast<double>(order.size()), .others = {{"way", way}}};
    });
  }
  Rounds three(3);
  const auto turns = TakeTurns(ways, &three);
  ASSERT_TRUE(turns.ok());
  ASSERT_EQ(order.size(), 36u);
  for (size_t round = 0; round < 3; ++round) {
    for (size_t way = 0; way < 12; ++way) {
      const auto begin = order.begin() + static_cast<ptrdiff_t>(12 * round);
      const auto at = std::find(begin, begin + 12, way);
      ASSERT_NE(at, begin + 12) << "way " << way << " has no turn in round " << round;
      const Turn& turn = (*turns)[way][round];
      EXPECT_EQ(turn.others.at("way"), way);
      EXPECT_NEAR(turn.seconds, 1e-9 * static_cast<double>(at - order.begin() + 1), 1e-15);
    }
  }
  EXPECT_FALSE(std::is_sorted(order.begin(), order.begin() + 12) &&
               std::is_sorted(order.begin() + 12, order.begin() + 24));
}

TEST(TurnsTest, TheFirstErrorEndsThem) {
  int turns = 0;
  const auto fails = [&]() -> absl::StatusOr<Turn> {
    ++turns;
    return absl::InternalError("out of order");
  };
  Rounds five(5), one(1);
  EXPECT_EQ(TakeTurns({fails, fails}, &five).status(), absl::InternalError("out of order"));
  EXPECT_EQ(turns, 1);
  EXPECT_TRUE(TakeTurns({[] { return Turn{.seconds = 1}; }}, &one).ok());
}

TEST(TurnsTest, TurnsOfRoundsThatDoNotCountAreLeftOut) {
  const double flops[] = {100, 100, 50, 100, 100};
  int probes = 0, turns = 0;
  Rounds rounds(2, [&] { return SpeedProbe::Speed{.flops = flops[probes++]}; });
  const auto taken = TakeTurns({[&] { return Turn{.seconds = static_cast<double>(++turns)}; }}, &rounds);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(turns, 4);  // the second and the third began or ended at half of the speed
  ASSERT_EQ((*taken)[0].size(), 2u);
  EXPECT_EQ((*taken)[0][0].seconds, 1);
  EXPECT_EQ((*taken)[0][1].seconds, 4);
}

TEST(TurnsTest, MediansOfEachFigure) {
  const Turn median = Median(std::vector<Turn>{{3, {{"a", 1}}}, {1, {{"a", 5}}}, {2, {{"a", 9}}}});
  EXPECT_EQ(median.seconds, 2);
  EXPECT_EQ(median.others.at("a"), 5);
}

}  // namespace
}  // namespace weft
