#include "weft/text/learn/learn_vocabulary.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace weft {
namespace {

// Returns the merges that are learnt from `words`, as "left right", from an alphabet of the letters a to z.
std::vector<std::string> Learn(const std::vector<std::pair<std::string, int64_t>>& words, VocabularyLimits limits) {
  Vocabulary vocabulary;
  for (char letter = 'a'; letter <= 'z'; ++letter) EXPECT_TRUE(vocabulary.Add(std::string(1, letter)).ok());
  SymbolWords symbols;
  for (const auto& [word, count] : words) {
    std::vector<int32_t> ids;
    for (const char letter : word) ids.push_back(letter - 'a');
    symbols.Add(ids, count);
  }
  std::vector<std::string> merges;
  for (const LearntMerge& merge : LearnVocabulary(std::move(symbols), limits, &vocabulary)) {
    merges.push_back(vocabulary.token(merge.left) + " " + vocabulary.token(merge.right));
    EXPECT_EQ(vocabulary.token(merge.merged), vocabulary.token(merge.left) + vocabulary.token(merge.right));
  }
  return merges;
}

// The merges below are those that tokenizers 0.23.3 learns from the same words: trainers.BpeTrainer, with the alphabet
// a to z, after pre_tokenizers.WhitespaceSplit, from each word as often as its count.
TEST(LearnVocabularyTest, TheMostFrequentPairGoesFirst) {
  const std::vector<std::pair<std::string, int64_t>> words = {{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
  // es and st both occur 9 times; e has a lower id than s. Then est. Then lo and ow 7 times.
  EXPECT_EQ(Learn(words, {.vocabulary = 30}), (std::vector<std::string>{"e s", "es t", "l o", "lo w"}));
}

TEST(LearnVocabularyTest, StopsAtTheLimits) {
  EXPECT_EQ(Learn({{"ab", 3}, {"cd", 1}}, {.vocabulary = 100}), (std::vector<std::string>{"a b"}));
  EXPECT_EQ(Learn({{"ab", 3}, {"cd", 1}}, {.vocabulary = 100, .min_count = 1}),
            (std::vector<std::string>{"a b", "c d"}));
  EXPECT_EQ(Learn({{"ab", 3}, {"cd", 1}}, {.vocabulary = 26}), std::vector<std::string>());
  EXPECT_EQ(Learn({}, {.vocabulary = 100}), std::vector<std::string>());
}

TEST(LearnVocabularyTest, RunsOfOneLetterAreMergedFromTheLeft) {
  EXPECT_EQ(Learn({{"aaaaaaa", 3}, {"aaab", 2}, {"baaa", 4}}, {.vocabulary = 100}),
            (std::vector<std::string>{"a a", "aa a", "b aaa", "aa aa", "aaaa aaa", "aaa b"}));
}

TEST(LearnVocabularyTest, TheRightPartLosesThePrefix) {
  Vocabulary vocabulary = *Vocabulary::Create({"a", "##a", "##b"});
  SymbolWords words;
  words.Add({0, 1, 2}, 5);  // aab
  words.Add({0, 2}, 2);     // ab
  const std::vector<LearntMerge> merges =
      LearnVocabulary(std::move(words), {.vocabulary = 100, .prefix = "##"}, &vocabulary);
  EXPECT_EQ(merges, (std::vector<LearntMerge>{{0, 1, 3}, {3, 2, 4}, {0, 2, 5}}));
  EXPECT_EQ(vocabulary.token(3), "aa");
  EXPECT_EQ(vocabulary.token(4), "aab");
  EXPECT_EQ(vocabulary.token(5), "ab");
}

}  // namespace
}  // namespace weft
