#include "weft/models/generate.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

const std::vector<float> kLogits = {0, 2, 1, 2};  // e^0, e^2, e^1, e^2; ranked 1, 3, 2, 0

TEST(SampleTokenTest, TakesTheFirstOfTheLikeliestAtTemperatureZero) {
  EXPECT_EQ(SampleToken(kLogits, {.temperature = 0}, 0.99), 1);
}

TEST(SampleTokenTest, DrawsInProportion) {
  // Of the sum 18.496: 0.3995 to token 1, 0.3995 to 3, 0.1470 to 2, 0.0541 to 0.
  const struct {
    double uniform;
    int32_t token;
  } kRows[] = {{0, 1}, {0.399, 1}, {0.400, 3}, {0.798, 3}, {0.800, 2}, {0.945, 2}, {0.947, 0}, {0.9999999, 0}};
  for (const auto& row : kRows) EXPECT_EQ(SampleToken(kLogits, {}, row.uniform), row.token) << row.uniform;
}

TEST(SampleTokenTest, KeepsTheTopK) {
  EXPECT_EQ(SampleToken(kLogits, {.top_k = 1}, 0.9999), 1);
  EXPECT_EQ(SampleToken(kLogits, {.top_k = 2}, 0.9999), 3);
  EXPECT_EQ(SampleToken(kLogits, {.top_k = 100}, 0.9999999), 0);
}

TEST(SampleTokenTest, ATemperatureSharpens) {
  EXPECT_EQ(SampleToken(kLogits, {.temperature = 0.01}, 0.9999), 3);
  EXPECT_EQ(SampleToken(kLogits, {.temperature = 100}, 0.9), 0);
}

class GeneratorTest : public testing::Test {
 protected:
  std::vector<int32_t> Generate(std::vector<int32_t> prompt, const GenerateOptions& options, int threads = 1) {
    Parameters parameters({.seed = 3});
    const auto generator =
        Generator::Create({.vocabulary = 11, .context = 8, .layers = 2, .heads = 2, .width = 16}, &parameters, threads);
    EXPECT_TRUE(generator.ok()) << generator.status();
    const auto tokens = (*generator)->Generate(prompt, options);
    EXPECT_TRUE(tokens.ok()) << tokens.status();
    return tokens.ok() ? *tokens : std::vector<int32_t>();
  }
};

TEST_F(GeneratorTest, DependsOnTheSeedAlone) {
  const std::vector<int32_t> tokens = Generate({1, 2}, {.length = 30, .seed = 5});
  EXPECT_EQ(tokens.size(), 30);
  EXPECT_EQ(Generate({1, 2}, {.length = 30, .seed = 5}, /*threads=*/2), tokens);
  EXPECT_NE(Generate({1, 2}, {.length = 30, .seed = 6}), tokens);
}

TEST_F(GeneratorTest, SeesNoMoreThanTheContext) {
  const GenerateOptions greedy = {.length = 12, .temperature = 0};
  EXPECT_EQ(Generate({9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8}, greedy), Generate({1, 2, 3, 4, 5, 6, 7, 8}, greedy));
}

TEST_F(GeneratorTest, RefusesAnEmptyPrompt) {
  Parameters parameters;
  const auto generator =
      Generator::Create({.vocabulary = 5, .context = 4, .layers = 1, .heads = 1, .width = 4}, &parameters);
  ASSERT_TRUE(generator.ok());
  EXPECT_FALSE((*generator)->Generate({}, {}).ok());
}

}  // namespace
}  // namespace weft
