#include "weft/text/data/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>

namespace weft {
namespace {

TokenCorpus Counting(int64_t size, int64_t context) {
  std::vector<int32_t> tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return *TokenCorpus::Create(std::move(tokens), context);
}

TEST(CorpusTest, KeepsTheLastTenthForValidation) {
  const TokenCorpus corpus = Counting(1000, 8);
  EXPECT_EQ(corpus.tokens(DataSplit::kTrain).size(), 900);
  EXPECT_EQ(corpus.tokens(DataSplit::kValidation).front(), 900);
  EXPECT_EQ(corpus.tokens(DataSplit::kValidation).back(), 999);
}

TEST(CorpusTest, TargetsAreTheNextTokensOfTheSameSplit) {
  const TokenCorpus corpus = Counting(200, 8);
  TokenBatch batch;
  for (const DataSplit split : {DataSplit::kTrain, DataSplit::kValidation}) {
    int32_t smallest = 1000, largest = -1;
    for (uint32_t step = 0; step < 200; ++step) {
      corpus.Sample({.split = split, .rows = 3, .context = 8, .random = {.seed = 5, .step = step}}, &batch);
      ASSERT_EQ(batch.tokens.size(), 24);
      ASSERT_EQ(batch.targets.size(), 24);
      for (size_t i = 0; i < 24; ++i) {
        EXPECT_EQ(batch.targets[i], batch.tokens[i] + 1);
        if (i % 8 > 0) {
          EXPECT_EQ(batch.tokens[i], batch.tokens[i - 1] + 1);
        }
      }
      smallest = std::min(smallest, *std::min_element(batch.tokens.begin(), batch.tokens.end()));
      largest = std::max(largest, *std::max_element(batch.targets.begin(), batch.targets.end()));
    }
    EXPECT_EQ(smallest, split == DataSplit::kTrain ? 0 : 180);  // every start is drawn, including the first and last
    EXPECT_EQ(largest, split == DataSplit::kTrain ? 179 : 199);
  }
}

TEST(CorpusTest, ABatchDependsOnSeedStepAndNumberOnly) {
  const TokenCorpus corpus = Counting(100000, 8);
  const auto starts = [&](DataSplit split, RandomStream random, int64_t number) {
    TokenBatch batch;
    corpus.Sample({.split = split, .rows = 4, .context = 8, .random = random, .batch = number}, &batch);
    return batch.tokens;
  };
  const auto first = starts(DataSplit::kTrain, {.seed = 1, .step = 7}, 0);
  EXPECT_EQ(first, starts(DataSplit::kTrain, {.seed = 1, .step = 7}, 0));
  EXPECT_NE(first, starts(DataSplit::kTrain, {.seed = 2, .step = 7}, 0));
  EXPECT_NE(first, starts(DataSplit::kTrain, {.seed = 1, .step = 8}, 0));
  EXPECT_NE(first, starts(DataSplit::kTrain, {.seed = 1, .step = 7}, 1));
}

TEST(CorpusTest, RefusesATextThatIsShorterThanTheContext) {
  EXPECT_TRUE(TokenCorpus::Create(std::vector<int32_t>(81), 8).ok());
  const auto refused = TokenCorpus::Create(std::vector<int32_t>(80), 8);
  EXPECT_EQ(refused.status().message(),
            "the text is too short for a context of 8: it has 80 tokens, of which the last 8 are for validation, which "
            "needs more than 8; take a longer text or a smaller context");
  EXPECT_FALSE(TokenCorpus::Create({}, 8).ok());
}

TEST(ReadTextTest, NamesFileAndFault) {
  const std::string folder = testing::TempDir();
  EXPECT_EQ(ReadText(folder + "/missing.txt").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadText(folder).ok());
  const std::string path = folder + "/text.txt";
  std::ofstream(path).close();
  EXPECT_EQ(ReadText(path).status().message(), path + ": the file is empty");
  std::ofstream(path) << "caf\xE9";
  EXPECT_EQ(ReadText(path).status().message(), path + ": not UTF-8 at byte 3 (0xE9)");
  std::ofstream(path) << "café";
  EXPECT_EQ(*ReadText(path), "café");
}

}  // namespace
}  // namespace weft
