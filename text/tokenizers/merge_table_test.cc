#include <gtest/gtest.h>

#include <random>

#include "weft/text/tokenizers/bpe.h"

namespace weft {
namespace {

TEST(MergeTableTest, TheBestMergeGoesFirst) {
  MergeTable merges;
  EXPECT_TRUE(merges.Add(1, 2, {.rank = 1, .id = 12}));
  EXPECT_TRUE(merges.Add(2, 3, {.rank = 0, .id = 23}));
  EXPECT_TRUE(merges.Add(1, 23, {.rank = 2, .id = 123}));
  EXPECT_FALSE(merges.Add(1, 2, {.rank = 7, .id = 7}));
  const struct {
    std::vector<int32_t> ids, merged;
  } rows[] = {
      {{}, {}}, {{1}, {1}}, {{1, 2}, {12}}, {{1, 2, 3}, {123}}, {{1, 2, 1, 2, 3}, {12, 123}}, {{3, 2, 1}, {3, 2, 1}},
  };
  for (const auto& row : rows) {
    std::vector<int32_t> ids = row.ids;
    merges.Apply(&ids);
    EXPECT_EQ(ids, row.merged);
  }
}

TEST(MergeTableTest, AmongEqualsTheLeftmostGoesFirst) {
  MergeTable merges;
  merges.Add(1, 1, {.rank = 0, .id = 2});
  for (size_t size : {3, 33}) {
    std::vector<int32_t> ids(size, 1), merged(size / 2, 2);
    merged.push_back(1);
    merges.Apply(&ids);
    EXPECT_EQ(ids, merged);
  }
}

// The definition: applies one merge at a time to the whole word.
std::vector<int32_t> Slowly(const MergeTable& merges, std::vector<int32_t> ids) {
  while (true) {
    int best = -1;
    for (int i = 0; i + 1 < static_cast<int>(ids.size()); ++i) {
      const Merge* merge = merges.Find(ids[i], ids[i + 1]);
      if (merge != nullptr && (best < 0 || merge->rank < merges.Find(ids[best], ids[best + 1])->rank)) best = i;
    }
    if (best < 0) return ids;
    ids[best] = merges.Find(ids[best], ids[best + 1])->id;
    ids.erase(ids.begin() + best + 1);
  }
}

TEST(MergeTableTest, WordsOfEveryLengthFollowTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    MergeTable merges;
    for (int i = 0; i < 40; ++i) {
      const int32_t left = static_cast<int32_t>(random() % 20), right = static_cast<int32_t>(random() % 20);
      merges.Add(left, right, {.rank = static_cast<int32_t>(random() % 30), .id = static_cast<int32_t>(random() % 20)});
    }
    std::vector<int32_t> ids(random() % 100);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % 8);
    const std::vector<int32_t> expected = Slowly(merges, ids);
    merges.Apply(&ids);
    EXPECT_EQ(ids, expected);
  }
}

TEST(MergeTableTest, AWordOfAMillionTokensTakesNoQuadraticTime) {
  MergeTable merges;
  for (int32_t i = 0; i < 19; ++i) merges.Add(i, i, {.rank = i, .id = i + 1});
  std::vector<int32_t> ids(1 << 20, 0);
  merges.Apply(&ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{19, 19}));
}

}  // namespace
}  // namespace weft
