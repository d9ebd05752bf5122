#include "weft/text/data/masking.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr int32_t kMask = 5;
constexpr int64_t kRows = 400, kLength = 50, kCount = 7;
const MaskingOptions kOptions = {.count = kCount, .mask = kMask, .vocabulary = 2000};

struct Masked {
  std::vector<int32_t> before, after;
  std::vector<bool> may;
  MaskedPositions positions;
};

// Masks rows of 50 tokens with ids of at least 100. The first and the last token of a row may not be chosen.
Masked MaskRows(RandomStream random) {
  Masked result;
  result.before.resize(kRows * kLength);
  for (size_t i = 0; i < result.before.size(); ++i) {
    result.before[i] = static_cast<int32_t>(100 + i % 1000);
    result.may.push_back(i % kLength != 0 && i % kLength != kLength - 1);
  }
  result.after = result.before;
  MaskTokens(result.may, kRows, kOptions, random, absl::MakeSpan(result.after), &result.positions);
  return result;
}

TEST(MaskingTest, ChoosesDifferentPlacesOfEachRow) {
  const Masked masked = MaskRows({.seed = 1, .step = 3});
  EXPECT_EQ(masked.positions.chosen, kRows * kCount);
  std::vector<bool> chosen(masked.before.size());
  for (size_t i = 0; i < masked.positions.indices.size(); ++i) {
    const auto index = static_cast<size_t>(masked.positions.indices[i]);
    EXPECT_EQ(index / kLength, i / kCount) << "of its own row";
    EXPECT_TRUE(masked.may[index]);
    EXPECT_FALSE(chosen[index]) << "chosen twice";
    chosen[index] = true;
    EXPECT_EQ(masked.positions.targets[i], masked.before[index]);
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) {
      EXPECT_EQ(masked.after[i], masked.before[i]);
    }
  }
}

TEST(MaskingTest, APartOfTheRowsIsMaskedAsInTheWhole) {
  const Masked whole = MaskRows({.seed = 1, .step = 3});
  constexpr int64_t kFirst = 150, kPart = 20;
  std::vector<int32_t> tokens(whole.before.begin() + kFirst * kLength,
                              whole.before.begin() + (kFirst + kPart) * kLength);
  const std::vector<bool> may(whole.may.begin() + kFirst * kLength, whole.may.begin() + (kFirst + kPart) * kLength);
  MaskedPositions positions;
  MaskTokens(may, kPart, kOptions, {.seed = 1, .step = 3}, absl::MakeSpan(tokens), &positions, kFirst);
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), whole.after.begin() + kFirst * kLength));
  for (size_t i = 0; i < kPart * kCount; ++i) {
    EXPECT_EQ(positions.indices[i] + kFirst * kLength, whole.positions.indices[kFirst * kCount + i]);
    EXPECT_EQ(positions.targets[i], whole.positions.targets[kFirst * kCount + i]);
  }
}

TEST(MaskingTest, HidesEightOfTenAndChangesOne) {
  const Masked masked = MaskRows({.seed = 1, .step = 3});
  double hidden = 0, same = 0;
  std::map<size_t, int> by_position;
  for (const int32_t index : masked.positions.indices) {
    const auto i = static_cast<size_t>(index);
    hidden += masked.after[i] == kMask;
    same += masked.after[i] == masked.before[i];
    ++by_position[i % kLength];
  }
  const double all = kRows * kCount;  // 2800: the standard deviations are 0.0076 and 0.0057
  EXPECT_NEAR(hidden / all, 0.8, 0.03);
  EXPECT_NEAR(same / all, 0.1, 0.025);
  EXPECT_EQ(by_position.size(), kLength - 2) << "every position is chosen now and then";
}

TEST(MaskingTest, DependsOnSeedAndStepAlone) {
  EXPECT_EQ(MaskRows({.seed = 1, .step = 3}).after, MaskRows({.seed = 1, .step = 3}).after);
  EXPECT_NE(MaskRows({.seed = 1, .step = 3}).after, MaskRows({.seed = 1, .step = 4}).after);
  EXPECT_NE(MaskRows({.seed = 1, .step = 3}).after, MaskRows({.seed = 2, .step = 3}).after);
}

TEST(MaskingTest, ARowWithFewerTokensHasFewerChosen) {
  std::vector<int32_t> tokens = {1, 2, 3, 4, 7, 8};
  MaskedPositions out;
  MaskTokens({false, true, true, false, false, false}, 2, {.count = 3, .mask = kMask, .vocabulary = 9}, {},
             absl::MakeSpan(tokens), &out);
  EXPECT_EQ(out.chosen, 2);
  std::vector<int32_t> targets(out.targets.begin(), out.targets.begin() + 2);
  std::sort(targets.begin(), targets.end());
  EXPECT_EQ(targets, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(std::count(out.targets.begin(), out.targets.end(), -100), 4);
}

}  // namespace
}  // namespace weft
