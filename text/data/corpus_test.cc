#include "weft/text/data/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace weft {
namespace {

TokenCorpus CountingCorpus(int64_t size, int64_t context) {
  std::vector<int32_t> tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return *TokenCorpus::Create(std::move(tokens), context);
}

TEST(CorpusTest, KeepsTheLastTenthForValidation) {
  const TokenCorpus corpus = CountingCorpus(1000, 8);
  EXPECT_EQ(corpus.tokens(DataSplit::kTrain).size(), 900);
  EXPECT_EQ(corpus.tokens(DataSplit::kValidation).front(), 900);
  EXPECT_EQ(corpus.tokens(DataSplit::kValidation).back(), 999);
}

TEST(CorpusTest, TargetsAreTheNextTokensOfTheSameSplit) {
  const TokenCorpus corpus = CountingCorpus(200, 8);
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
  const TokenCorpus corpus = CountingCorpus(100000, 8);
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

// Tokens `first`, `first` + 1, ... A document has `document` tokens.
class Counting final : public TokenSource {
 public:
  Counting(int64_t size, int64_t first, int64_t document = 1000) : size_(size), first_(first), document_(document) {}
  int64_t size(DataSplit /*split*/) const override { return size_; }
  absl::Status Read(DataSplit /*split*/, int64_t begin, absl::Span<int32_t> out) const override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int32_t>(first_ + begin + static_cast<int64_t>(i));
    latest_ = begin;
    read_ += static_cast<int64_t>(out.size());
    return absl::OkStatus();
  }
  absl::Status Documents(DataSplit /*split*/, int64_t begin, absl::Span<int32_t> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<int32_t>((begin + static_cast<int64_t>(i)) / document_ - begin / document_);
    }
    return absl::OkStatus();
  }
  int64_t latest() const { return latest_; }  // where the last window began
  int64_t read() const { return read_; }      // number of tokens that were read

 private:
  int64_t size_, first_, document_;
  mutable int64_t latest_ = 0, read_ = 0;
};

TEST(SampleWindowsTest, DrawsSourcesByTheirWeights) {
  const Counting a(1000, 0), b(1000, 1000), never(1000, 2000);
  const WeightedTokens sources[] = {{&a, 3}, {&b, 1}, {&never, 0}};
  TokenBatch batch;
  ASSERT_TRUE(SampleWindows(sources, {.rows = 40'000, .context = 4, .random = {.seed = 3}}, &batch).ok());
  int64_t from_a = 0;
  for (size_t row = 0; row < 40'000; ++row) {
    const int32_t first = batch.tokens[4 * row];
    ASSERT_LT(first, 2000);
    ASSERT_EQ(batch.tokens[4 * row + 3], first + 3);
    from_a += first < 1000;
  }
  EXPECT_NEAR(from_a, 30'000, 5 * 87) << "the standard deviation of the binomial distribution is 87";
}

TEST(SampleWindowsTest, AWindowDoesNotDependOnTheOtherRows) {
  const Counting a(1000, 0), b(5000, 1000);
  const WeightedTokens sources[] = {{&a, 1}, {&b, 1}};
  TokenBatch whole, half;
  ASSERT_TRUE(SampleWindows(sources, {.rows = 8, .context = 4, .random = {.seed = 3, .step = 9}}, &whole).ok());
  for (int64_t batch = 0; batch < 2; ++batch) {
    ASSERT_TRUE(
        SampleWindows(sources, {.rows = 4, .context = 4, .random = {.seed = 3, .step = 9}, .batch = batch}, &half)
            .ok());
    EXPECT_TRUE(std::equal(half.tokens.begin(), half.tokens.end(), whole.tokens.begin() + 16 * batch));
  }
}

TEST(SampleWindowsTest, RowsOfABatchAreThoseOfTheWholeBatch) {
  const Counting a(1000, 0), b(5000, 1000);
  const WeightedTokens sources[] = {{&a, 1}, {&b, 1}};
  WindowOptions options = {.rows = 8, .context = 4, .random = {.seed = 3, .step = 9}, .batch = 2, .documents = true};
  TokenBatch whole, part;
  ASSERT_TRUE(SampleWindows(sources, options, &whole).ok());
  for (options.begin = 0; options.begin < 8; ++options.begin) {
    for (options.end = options.begin + 1; options.end <= 8; ++options.end) {
      const int64_t before = a.read() + b.read();
      ASSERT_TRUE(SampleWindows(sources, options, &part).ok());
      EXPECT_EQ(a.read() + b.read() - before, (options.end - options.begin) * 5) << "it reads no other rows";
      const auto same = [&](const std::vector<int32_t>& of_part, const std::vector<int32_t>& of_whole) {
        return std::equal(of_part.begin(), of_part.end(), of_whole.begin() + 4 * options.begin,
                          of_whole.begin() + 4 * options.end);
      };
      EXPECT_TRUE(same(part.tokens, whole.tokens));
      EXPECT_TRUE(same(part.targets, whole.targets));
      EXPECT_TRUE(same(part.documents, whole.documents));
    }
  }
}

TEST(SampleWindowsTest, RowsDrawFromTheirPartsOfASource) {
  for (const int64_t size : {6, 7, 11, 1003}) {  // 2, 3, 7 and 999 windows of 4 tokens
    const Counting source(size, 0);
    const WeightedTokens sources[] = {{&source}};
    std::set<int64_t> seen;
    TokenBatch batch;
    for (uint32_t step = 0; step < 3000; ++step) {
      ASSERT_TRUE(
          SampleWindows(sources, {.rows = 5, .context = 4, .random = {.seed = 1, .step = step}, .by_row = true}, &batch)
              .ok());
      for (int64_t row = 0; row < 5; ++row) {
        const int64_t begin = batch.tokens[4 * row], windows = size - 4;
        ASSERT_LT(begin, windows);
        if (windows >= 5) {
          ASSERT_LE(row * (windows / 5) + std::min(row, windows % 5), begin);
          ASSERT_LT(begin, (row + 1) * (windows / 5) + std::min(row + 1, windows % 5));
        }
        seen.insert(begin);
      }
    }
    EXPECT_EQ(seen.size(), size - 4) << "every window can be drawn";
  }
}

TEST(SampleWindowsTest, NumbersDocumentsFromZeroInEachRow) {
  const Counting a(1000, 0, /*document=*/3);
  const WeightedTokens sources[] = {{&a}};
  TokenBatch batch;
  ASSERT_TRUE(SampleWindows(sources, {.rows = 50, .context = 8}, &batch).ok());
  EXPECT_TRUE(batch.documents.empty());
  ASSERT_TRUE(SampleWindows(sources, {.rows = 50, .context = 8, .documents = true}, &batch).ok());
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    EXPECT_EQ(batch.documents[i], batch.tokens[i] / 3 - batch.tokens[i / 8 * 8] / 3);
  }
}

// With 32 random bits, a source of 2^34 tokens would have windows at multiples of 4 only.
TEST(SampleWindowsTest, ReachesEveryTokenOfAHugeSource) {
  constexpr int64_t kSize = int64_t{1} << 34;
  const Counting huge(kSize, 0);
  const WeightedTokens sources[] = {{&huge}};
  std::set<int64_t> remainders, sixteenths;
  TokenBatch batch;
  for (uint32_t step = 0; step < 400; ++step) {
    ASSERT_TRUE(SampleWindows(sources, {.context = 4, .random = {.seed = 1, .step = step}}, &batch).ok());
    ASSERT_GE(huge.latest(), 0);
    ASSERT_LT(huge.latest(), kSize - 4);
    remainders.insert(huge.latest() % 4);
    sixteenths.insert(huge.latest() / (kSize / 16));
  }
  EXPECT_EQ(remainders.size(), 4);
  EXPECT_EQ(sixteenths.size(), 16);
}

}  // namespace
}  // namespace weft
