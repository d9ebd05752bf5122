#include "weft/inference/runtime/runtime.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

TEST(GraphSizeTest, RoundsUpToFewSizes) {
  std::vector<int64_t> powers, finer;
  for (const int64_t n : {0, 1, 3, 5, 9, 48, 65}) powers.push_back(GraphSize(n));
  for (const int64_t n : {1, 4, 5, 9, 13, 17, 25}) finer.push_back(GraphSize(n, /*step=*/4, /*finer=*/true));
  EXPECT_THAT(powers, ElementsAre(1, 1, 4, 8, 16, 64, 128));
  EXPECT_THAT(finer, ElementsAre(4, 4, 8, 12, 16, 24, 32));
  EXPECT_EQ(GraphSize(17, /*step=*/16), 32);
}

struct Countdown {
  int name, left;
};

// There is room for two countdowns. Each step lowers all of them by 1.
TEST(RunContinuouslyTest, MakesRoomForTheNextAtOnce) {
  std::deque<std::unique_ptr<Countdown>> waiting, live;
  for (const int left : {3, 1, 1, 2}) {
    waiting.push_back(std::make_unique<Countdown>(Countdown{static_cast<int>(waiting.size()), left}));
  }
  std::vector<std::vector<int>> steps;
  std::vector<int> order;
  const auto admit = [&]() -> absl::StatusOr<std::unique_ptr<Countdown>> {
    if (waiting.empty() || live.size() == 2) return nullptr;
    auto next = std::move(waiting.front());
    waiting.pop_front();
    return next;
  };
  const auto step = [&] {
    steps.emplace_back();
    for (const auto& each : live) steps.back().push_back(each->name), --each->left;
    return absl::OkStatus();
  };
  const auto leaves = [&](const std::unique_ptr<Countdown>& each) -> absl::StatusOr<bool> {
    if (each->left == 0) order.push_back(each->name);
    return each->left == 0;
  };
  EXPECT_TRUE(RunContinuously(&live, admit, step, leaves).ok());
  EXPECT_THAT(steps, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 2), ElementsAre(0, 3), ElementsAre(3)));
  EXPECT_THAT(order, ElementsAre(1, 2, 0, 3));
}

TEST(RunContinuouslyTest, EndsWithTheFirstError) {
  std::deque<std::unique_ptr<Countdown>> live;
  const auto admit = [&]() -> absl::StatusOr<std::unique_ptr<Countdown>> {
    if (!live.empty()) return nullptr;
    return std::make_unique<Countdown>(Countdown{0, 1});
  };
  const auto fails = [] { return absl::InternalError("it fails"); };
  const auto leaves = [](const std::unique_ptr<Countdown>&) -> absl::StatusOr<bool> { return true; };
  EXPECT_EQ(RunContinuously(&live, admit, fails, leaves).message(), "it fails");
  EXPECT_EQ(live.size(), 1) << "the caller gives back what it holds";
}

}  // namespace
}  // namespace weft
