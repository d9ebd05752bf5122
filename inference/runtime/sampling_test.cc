#include "weft/inference/runtime/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const std::vector<float> kLogits = {0, 2, 1, 2};  // e^0, e^2, e^1, e^2; ranked 1, 3, 2, 0

TEST(SampleTokenTest, TakesTheFirstOfTheLikeliestAtTemperatureZero) {
  EXPECT_EQ(SampleToken(kLogits, {.temperature = 0}, 0.99), 1);
}

TEST(SampleTokenTest, FindsTheLargestOfManyLogits) {
  const auto largest = [](std::vector<float> logits) { return SampleToken(logits, {.temperature = 0}, 0); };
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (int32_t at : {0, 15, 16, 1023, 1024, 2047, 2499}) {
    std::vector<float> logits(2500, -3);
    logits[at] = -1;
    EXPECT_EQ(largest(logits), at);
    logits[(at + 30) % 2500] = -1;  // as large
    EXPECT_EQ(largest(logits), std::min(at, (at + 30) % 2500));
    logits[at / 2] = at > 1 ? kNan : logits[at / 2];
    EXPECT_EQ(largest(logits), std::min(at, (at + 30) % 2500));
  }
  EXPECT_EQ(largest(std::vector<float>(2500, -kInfinity)), 0);
  EXPECT_EQ(largest(std::vector<float>(2500, kNan)), 0);
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
  EXPECT_EQ(SampleToken(kLogits, {.top_k = 100}, 0.9999999), SampleToken(kLogits, {}, 0.9999999));
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

// Returns how often each token of `logits` is drawn by numbers that are spread evenly over [0, 1).
std::vector<double> Frequencies(absl::Span<const float> logits, const SamplingOptions& options) {
  constexpr int kDraws = 20000;
  std::vector<double> frequencies(logits.size());
  for (int i = 0; i < kDraws; ++i) {
    frequencies[static_cast<size_t>(SampleToken(logits, options, (i + 0.5) / kDraws))] += 1.0 / kDraws;
  }
  return frequencies;
}

struct Published {
  SamplingOptions options;
  std::vector<double> probabilities;
};

// The probabilities are softmax of what MinPLogitsWarper, TypicalLogitsWarper and the other warpers of the package
// transformers leave, in the order in which its `generate` applies them.
TEST(SampleTokenTest, DrawsFromTheDistributionsOfTransformers) {
  const std::vector<float> logits = {2, 1, 0.5, 0, -1, 3, 1.5, -2};
  const Published rows[] = {
      {{}, {0.195341, 0.071862, 0.043586, 0.026436, 0.009725, 0.530991, 0.11848, 0.003578}},
      {{.min_p = 0.05}, {0.203425, 0.074836, 0.04539, 0, 0, 0.552966, 0.123383, 0}},
      {{.min_p = 0.1}, {0.213097, 0.078394, 0, 0, 0, 0.579259, 0.12925, 0}},
      {{.min_p = 0.2}, {0.231224, 0, 0, 0, 0, 0.628532, 0.140244, 0}},
      {{.min_p = 1}, {0, 0, 0, 0, 0, 1, 0, 0}},
      {{.typical_p = 0.2}, {0.622459, 0, 0, 0, 0, 0, 0.377541, 0}},
      {{.typical_p = 0.5}, {0.231224, 0, 0, 0, 0, 0.628532, 0.140244, 0}},
      {{.typical_p = 0.9}, {0.213097, 0.078394, 0, 0, 0, 0.579259, 0.12925, 0}},
      {{.temperature = 1.5, .top_k = 6, .top_p = 0.95, .min_p = 0.1, .typical_p = 0.6},
       {0.239367, 0.122895, 0, 0, 0, 0.466224, 0.171514, 0}},
      {{.temperature = 0.7, .top_k = 5, .top_p = 0.9, .min_p = 0.1, .typical_p = 0.6}, {0, 0, 0, 0, 0, 1, 0, 0}},
  };
  for (const Published& row : rows) {
    EXPECT_THAT(Frequencies(logits, row.options), Pointwise(DoubleNear(1e-4), row.probabilities))
        << row.options.min_p << " " << row.options.typical_p;
  }
}

TEST(SampleTokenTest, NeverDrawsATokenOfProbabilityZero) {
  const float hidden = -std::numeric_limits<float>::infinity();
  for (const SamplingOptions& options : {SamplingOptions{}, {.min_p = 1e-9}, {.typical_p = 0.99}}) {
    EXPECT_THAT(Frequencies({hidden, 1, hidden, 1}, options),
                ElementsAre(0, DoubleNear(0.5, 1e-9), 0, DoubleNear(0.5, 1e-9)));
  }
}

TEST(SampleTokenTest, PenaltiesChangeTheLogitsOfTheText) {
  const auto adjusted = [](const SamplingOptions& options) {
    EXPECT_TRUE(HasPenalties(options));
    std::vector<float> logits = {2, -2, 0.5f, 3};
    AdjustLogits({{0, 0}, {1, 1}, {2, 2}}, options, absl::MakeSpan(logits));
    return logits;
  };
  EXPECT_THAT(adjusted({.repetition_penalty = 2}), ElementsAre(1, -4, 0.25f, 3));
  EXPECT_THAT(adjusted({.presence_penalty = 0.5}), ElementsAre(2, -2.5f, 0, 3));
  EXPECT_THAT(adjusted({.frequency_penalty = -0.5}), ElementsAre(2, -1.5f, 1.5f, 3));
  EXPECT_THAT(adjusted({.repetition_penalty = 2, .presence_penalty = 1, .frequency_penalty = 1}),
              ElementsAre(1, -6, -2.75f, 3));
  EXPECT_FALSE(HasPenalties({.logit_bias = {{0, 1.0f}}}));
}

TEST(SampleTokenTest, SaysWhatCannotBe) {
  const auto error = [](const SamplingOptions& options) { return std::string(Validate(options).message()); };
  EXPECT_EQ(error({}), "");
  EXPECT_THAT(error({.repetition_penalty = 0}), HasSubstr("repetition-penalty: 0 is not a number above 0"));
  EXPECT_THAT(error({.presence_penalty = 2.5}), HasSubstr("presence-penalty: 2.5 is not a number in [-2, 2]"));
  EXPECT_THAT(error({.frequency_penalty = std::nan("")}), HasSubstr("frequency-penalty: nan is not"));
  EXPECT_THAT(error({.temperature = -1}), HasSubstr("temperature: -1 is not"));
  EXPECT_THAT(error({.top_k = -1}), HasSubstr("top-k: -1 is not"));
  EXPECT_THAT(error({.top_p = 1.5}), HasSubstr("top-p: 1.5 is not a number in [0, 1]"));
  EXPECT_THAT(error({.min_p = -0.1}), HasSubstr("min-p: -0.1 is not a number in [0, 1]"));
  EXPECT_THAT(error({.min_p = std::nan("")}), HasSubstr("min-p: nan is not"));
  EXPECT_THAT(error({.typical_p = -1}), HasSubstr("typical-p: -1 is not a number in [0, 1]"));
}

TEST(SampleTokenTest, OptionsThatKeepAllTokensOrOne) {
  for (const double uniform : {0.0, 0.1, 0.35, 0.6, 0.99}) {
    EXPECT_EQ(SampleToken(kLogits, {.top_k = 4}, uniform), SampleToken(kLogits, {}, uniform)) << "top_k keeps all";
    EXPECT_EQ(SampleToken(kLogits, {.top_p = 0}, uniform), 1) << "as in transformers, one token stays";
    EXPECT_EQ(SampleToken(kLogits, {.typical_p = 0}, uniform), SampleToken(kLogits, {.typical_p = 1e-9}, uniform));
  }
}

TEST(SampleTokenTest, ALogitBiasComesBeforeThePenalty) {
  std::vector<float> logits = {1, 2, 3};
  const float never = -std::numeric_limits<float>::infinity();
  AdjustLogits({{1, 0}}, {.logit_bias = {{0, 0.5f}, {1, 2}, {2, never}}, .repetition_penalty = 2},
               absl::MakeSpan(logits));
  EXPECT_THAT(logits, ElementsAre(1.5f, 2, never));
  EXPECT_EQ(SampleToken(logits, {.temperature = 0}, 0), 1);
}

TEST(LogprobsTest, AreThoseOfTheTokenAndOfTheLikeliest) {
  const std::vector<float> logits = {std::log(0.1f) + 50, std::log(0.5f) + 50, std::log(0.3f) + 50,
                                     std::log(0.1f) + 50};
  const std::vector<TokenLogprob> got = Logprobs(logits, 3, 2, 4);
  ASSERT_EQ(got.size(), 3);
  EXPECT_EQ(got[0].token, 3);
  EXPECT_NEAR(std::exp(got[0].logprob), 0.1, 1e-5);
  EXPECT_EQ(got[1].token, 1);
  EXPECT_NEAR(std::exp(got[1].logprob), 0.5, 1e-5);
  EXPECT_EQ(got[2].token, 2);
  EXPECT_NEAR(std::exp(got[2].logprob), 0.3, 1e-5);
  // Rows of padding count in the sum, and are not among the likeliest.
  const std::vector<TokenLogprob> padded = Logprobs(logits, 0, 2, 1);
  ASSERT_EQ(padded.size(), 2);
  EXPECT_EQ(padded[1].token, 0);
  EXPECT_NEAR(std::exp(padded[1].logprob), 0.1, 1e-5);
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
