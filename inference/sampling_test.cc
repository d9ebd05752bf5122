#include "weft/inference/sampling.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<float> kLogits = {0, 2, 1, 2};  // e^0, e^2, e^1, e^2; ranked 1, 3, 2, 0

TEST(SampleTokenTest, TakesTheFirstOfTheLikeliestAtTemperatureZero) {
  EXPECT_EQ(SampleToken(kLogits, {.temperature = 0}, 0.99), 1);
}

struct Row {
  double uniform;
  int32_t token;
};

TEST(SampleTokenTest, DrawsInProportion) {
  // Of the sum 18.496: 0.0541 to token 0, 0.3995 to 1, 0.1470 to 2, 0.3995 to 3.
  for (const Row& row :
       {Row{0, 0}, {0.054, 0}, {0.055, 1}, {0.453, 1}, {0.454, 2}, {0.6, 2}, {0.601, 3}, {0.9999999, 3}}) {
    EXPECT_EQ(SampleToken(kLogits, {}, row.uniform), row.token) << row.uniform;
  }
}

TEST(SampleTokenTest, KeepsTheTopK) {
  EXPECT_EQ(SampleToken(kLogits, {.top_k = 1}, 0.9999), 1);
  EXPECT_EQ(SampleToken(kLogits, {.top_k = 2}, 0.4999), 1);
  EXPECT_EQ(SampleToken(kLogits, {.top_k = 2}, 0.9999), 3);
  EXPECT_EQ(SampleToken(kLogits, {.top_k = 100}, 0.9999999), 0);
}

TEST(SampleTokenTest, KeepsTheFewestThatHaveTopP) {
  // Ranked, their probabilities add up to 0.3995, 0.7990, 0.9459, 1.
  for (const auto& [top_p, last] : {std::pair{0.01, 1}, {0.399, 1}, {0.4, 3}, {0.798, 3}, {0.8, 2}, {0.95, 0}}) {
    EXPECT_EQ(SampleToken(kLogits, {.top_p = top_p}, 0.9999999), last) << top_p;
  }
  EXPECT_EQ(SampleToken(kLogits, {.top_p = 0.8}, 0.42), 1);  // of 0.4223
  EXPECT_EQ(SampleToken(kLogits, {.top_p = 0.8}, 0.43), 3);
  EXPECT_EQ(SampleToken(kLogits, {.top_k = 2, .top_p = 0.49}, 0.9999), 1) << "of what top-k left it is the half";
}

TEST(SampleTokenTest, ATemperatureSharpens) {
  EXPECT_EQ(SampleToken(kLogits, {.temperature = 0.01}, 0.9999), 3);
  EXPECT_EQ(SampleToken(kLogits, {.temperature = 100}, 0.2), 0);
  EXPECT_EQ(SampleToken(kLogits, {.temperature = 0.01, .top_p = 0.6}, 0.4), 1);
}

TEST(SampleTokenTest, RepetitionMakesLogitsLess) {
  std::vector<float> logits = {2, -2, 0, 3};
  PenalizeRepetition({0, 1, 2}, 2, absl::MakeSpan(logits));
  EXPECT_EQ(logits, (std::vector<float>{1, -4, 0, 3}));
}

TEST(SampleTokenTest, SaysWhatCannotBe) {
  const auto error = [](const SamplingOptions& options) { return std::string(Validate(options).message()); };
  EXPECT_EQ(error({}), "");
  EXPECT_THAT(error({.repetition_penalty = 0}), HasSubstr("repetition_penalty is 0, wanted a number above 0"));
  EXPECT_THAT(error({.temperature = -1}), HasSubstr("temperature is -1"));
  EXPECT_THAT(error({.top_k = -1}), HasSubstr("top_k is -1"));
  EXPECT_THAT(error({.top_p = 0}), HasSubstr("top_p is 0, wanted a number in (0, 1]"));
}

TEST(LargestTest, RanksEqualValuesByIndex) {
  EXPECT_THAT(Largest<float>(kLogits, 3), ElementsAre(1, 3, 2));
  EXPECT_THAT(Largest<float>(kLogits, 9), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(Largest<double>({}, 1), ElementsAre());
}

TEST(ProbabilitiesTest, AreTheSoftmaxOfLogitsOfAnySize) {
  EXPECT_THAT(Probabilities({0, std::log(3.0f)}), ElementsAre(DoubleNear(0.25, 1e-7), DoubleNear(0.75, 1e-7)));
  EXPECT_THAT(Probabilities({1000, 1000, -1000}), ElementsAre(0.5, 0.5, 0));
}

}  // namespace
}  // namespace weft
