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
  const auto turns = TakeTurns(ways, 3);
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
  EXPECT_EQ(TakeTurns({fails, fails}, 5).status(), absl::InternalError("out of order"));
  EXPECT_EQ(turns, 1);
  EXPECT_TRUE(TakeTurns({[] { return Turn{.seconds = 1}; }}, 1).ok());
}

TEST(TurnsTest, MediansOfEachFigure) {
  const Turn median = Median(std::vector<Turn>{{3, {{"a", 1}}}, {1, {{"a", 5}}}, {2, {{"a", 9}}}});
  EXPECT_EQ(median.seconds, 2);
  EXPECT_EQ(median.others.at("a"), 5);
}

}  // namespace
}  // namespace weft
