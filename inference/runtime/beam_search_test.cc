#include "weft/inference/runtime/beam_search.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

constexpr int32_t kEnd = 2;

std::vector<float> Logs(std::vector<double> chances) {
  std::vector<float> logs;
  for (double p : chances) logs.push_back(static_cast<float>(std::log(p)));
  return logs;
}

std::vector<std::vector<int32_t>> Live(const BeamSearch& search) {
  std::vector<std::vector<int32_t>> tokens;
  for (const BeamSearch::Beam& beam : search.live()) tokens.push_back(beam.tokens);
  return tokens;
}

TEST(BeamSearchTest, WhatEndsMakesRoomForOthers) {
  BeamSearch search({.beam = 2, .n_best = 2}, 10);
  EXPECT_THAT(Live(search), ElementsAre(ElementsAre()));
  search.Extend(Logs({0.5, 0.4, 0.1}), {5, 6, kEnd});
  EXPECT_THAT(Live(search), ElementsAre(ElementsAre(5), ElementsAre(6)));
  // [5 end] 0.30, [6 7] 0.28, [5 7] 0.15, [6 end] 0.08: the third takes the first one's place.
  search.Extend(Logs({0.6, 0.3, 0.1, 0.7, 0.2, 0.1}), {kEnd, 7, 8, 7, kEnd, 8});
  EXPECT_THAT(Live(search), ElementsAre(ElementsAre(5, 7), ElementsAre(6, 7)));
  EXPECT_THAT(search.live()[1].path, ElementsAre(0, 1));
  // [6 7 end] 0.2520, [5 7 end] 0.1485: both are among the first two, which is enough.
  search.Extend(Logs({0.99, 0.01, 0.9, 0.1}), {kEnd, 7, kEnd, 7});
  EXPECT_TRUE(search.done());
  const std::vector<Hypothesis> best = search.Best();
  ASSERT_EQ(best.size(), 2);
  EXPECT_THAT(best[0].tokens, ElementsAre(6, 7));
  EXPECT_NEAR(best[0].log_probability, std::log(0.4 * 0.7 * 0.9), 1e-6);
  EXPECT_NEAR(best[0].score, std::log(0.4 * 0.7 * 0.9) / 3, 1e-6);
  EXPECT_THAT(best[1].tokens, ElementsAre(5));
  EXPECT_TRUE(best[1].ended);
}

TEST(BeamSearchTest, WithoutALengthPenaltyTheLikeliestEndIsEnough) {
  for (const double penalty : {0.0, 1.0}) {
    BeamSearch search({.beam = 2, .length_penalty = penalty}, 10);
    search.Extend(Logs({0.7, 0.2, 0.1}), {kEnd, 5, 6});
    EXPECT_EQ(search.done(), penalty == 0);
    EXPECT_NEAR(search.Best()[0].score, std::log(0.7), 1e-6);
  }
}

TEST(BeamSearchTest, LengthsAreKept) {
  BeamSearch search({.beam = 1, .min_length = 1}, 2);
  search.Extend(Logs({0.9, 0.06, 0.04}), {kEnd, 5, 6});
  EXPECT_THAT(Live(search), ElementsAre(ElementsAre(5)));
  search.Extend(Logs({0.9, 0.06, 0.04}), {6, kEnd, 5});
  EXPECT_TRUE(search.done());
  EXPECT_THAT(search.Best()[0].tokens, ElementsAre(5, 6));
  EXPECT_FALSE(search.Best()[0].ended);
}

TEST(BeamSearchTest, AnyEndTokenEndsAHypothesis) {
  BeamSearch search({.beam = 2, .n_best = 2, .end = {kEnd, 7}}, 10);
  search.Extend(Logs({0.4, 0.3, 0.2, 0.06, 0.04}), {kEnd, 7, 5, 6, 8});
  EXPECT_TRUE(search.done());
  const std::vector<Hypothesis> best = search.Best();
  ASSERT_EQ(best.size(), 2);
  EXPECT_TRUE(best[0].ended && best[1].ended && best[1].tokens.empty());
  EXPECT_EQ(BeamSearch::Candidates({.beam = 2, .end = {kEnd, 7}}), 3 * 2 + 2) << "of which two may not end";
}

TEST(BeamSearchTest, ForcedTokensAreCertainAndExcludedOnesNeverChosen) {
  BeamSearch search({.beam = 1, .forced_begin = 9, .forced_end = kEnd, .excluded = {5}}, 3);
  search.Extend(Logs({0.9, 0.1}), {5, 6});
  EXPECT_THAT(Live(search), ElementsAre(ElementsAre(9)));
  search.Extend(Logs({0.9, 0.1}), {5, 6});
  EXPECT_THAT(Live(search), ElementsAre(ElementsAre(9, 6)));
  search.Extend(Logs({0.9, 0.1}), {5, 6});
  ASSERT_TRUE(search.done());
  EXPECT_THAT(search.Best()[0].tokens, ElementsAre(9, 6));
  EXPECT_TRUE(search.Best()[0].ended);
  EXPECT_NEAR(search.Best()[0].log_probability, std::log(0.1), 1e-6);
}

// Two hypotheses end, with the scores log(0.5) and log(0.27) / 2. The best live one has log(0.075): a worse score at
// its present length of 2, and a better one at the maximum length of 10.
TEST(BeamSearchTest, TheRuleForStoppingIsChosen) {
  for (const auto& [stop, done] :
       {std::pair{BeamStop::kFull, true}, {BeamStop::kNoBetter, true}, {BeamStop::kNever, false}}) {
    BeamSearch search({.beam = 2, .stop = stop}, 10);
    search.Extend(Logs({0.5, 0.3, 0.15, 0.05}), {kEnd, 5, 6, 8});
    ASSERT_THAT(Live(search), ElementsAre(ElementsAre(6), ElementsAre(5)));
    search.Extend(Logs({0.5, 0.4, 0.1, 0.9, 0.06, 0.04}), {7, 8, kEnd, kEnd, 7, 8});
    EXPECT_EQ(search.done(), done) << static_cast<int>(stop);
  }
}

TEST(BeamSearchTest, WhatCannotBeIsNotExtended) {
  BeamSearch search({.beam = 3}, 2);
  search.Extend(Logs({1, 0, 0}), {5, 6, 7});
  EXPECT_THAT(Live(search), ElementsAre(ElementsAre(5)));
}

}  // namespace
}  // namespace weft
