#include "weft/lab/page.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;

TEST(PageTest, NoTextOfTheDataEndsTheScript) {
  EXPECT_EQ(FillPage("<script>/*DATA*/</script>", R"({"a": "</script><!-- $& \\"})"),
            R"(<script>{"a": "\u003c/script>\u003c!-- $& \\"}</script>)");
}

TEST(PageTest, TextsAreCutBetweenCharacters) {
  EXPECT_EQ(Shortened("né", 3), "né");
  EXPECT_EQ(Shortened("née", 3), "né…");
  EXPECT_EQ(Shortened("née", 2, " ..."), "n ...");
}

TEST(PageTest, WordsAreWrappedAt80Columns) {
  const std::string word(39, 'a'), wide = "é" + word.substr(1), longer(100, 'b');
  EXPECT_EQ(WrapWords({word, wide}, 1, 4), word + " " + wide);
  EXPECT_EQ(WrapWords({word, word}, 2, 4), word + "\n    " + word);
  EXPECT_EQ(WrapWords({"a", longer, "c"}, 0, 2), "a\n  " + longer + "\n  c");  // a word is never cut
}

TEST(CurveTest, ARunningMeanIsOfTheValuesUpToTheStep) {
  const Curve curve = {{1, 2}, {2, 4}, {3, 9}, {5, 1}, {6, 1}, {7, 10}, {8, -2}};
  EXPECT_THAT(RunningMean(curve, 3), ElementsAre(Point{1, 2}, Point{2, 3}, Point{3, 5}, Point{5, 14. / 3},
                                                 Point{6, 11. / 3}, Point{7, 4}, Point{8, 3}));
  EXPECT_EQ(RunningMean(curve, 1), curve);
  EXPECT_THAT(RunningMean(curve, 100).back().value, testing::DoubleEq(25. / 7));
  EXPECT_THAT(RunningMean({}, 3), IsEmpty());
}

TEST(CurveTest, AHugeValueIsForgottenAfterTheWindow) {
  Curve curve = {{0, 1e300}};
  for (int step = 1; step < 20; ++step) curve.push_back({step, 1});
  EXPECT_EQ(RunningMean(curve, 4)[4].value, 1);
}

TEST(CurveTest, AThinCurveKeepsExtremes) {
  Curve curve;
  for (int step = 0; step < 100'000; ++step) curve.push_back({step, std::sin(step * 0.37)});
  curve[41'234].value = 50;
  curve[87'654].value = -70;
  const Curve thin = Thin(curve, 1000);
  EXPECT_THAT(thin, SizeIs(Le(1000)));
  EXPECT_THAT(thin, SizeIs(testing::Gt(900)));
  EXPECT_EQ(thin.front(), curve.front());
  EXPECT_EQ(thin.back(), curve.back());
  EXPECT_THAT(thin, testing::Contains(curve[41'234]));
  EXPECT_THAT(thin, testing::Contains(curve[87'654]));
  EXPECT_TRUE(std::is_sorted(thin.begin(), thin.end(), [](auto& a, auto& b) { return a.step <= b.step; }));
  EXPECT_EQ(Thin(thin, 1000), thin) << "a short curve stays as it is";
}

TEST(CurveTest, PointsAtEqualDistances) {
  Curve curve;
  for (int step = 0; step <= 10; ++step) curve.push_back({step, 0});
  EXPECT_THAT(TakeEvenly(curve, 3), ElementsAre(Point{0, 0}, Point{5, 0}, Point{10, 0}));
  EXPECT_EQ(TakeEvenly(curve, 20), curve);
}

}  // namespace
}  // namespace weft
