#include "weft/text/learn/learn_vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace weft {
namespace {

using Words = std::vector<std::pair<std::string, int64_t>>;  // each with its count

// Returns the merges that are learnt from `words`, as "left right", from an alphabet of the letters a to z.
std::vector<std::string> Learn(const Words& words, VocabularyLimits limits) {
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

// The definition: counts all pairs again for each merge.
std::vector<std::string> Slowly(const Words& words, size_t vocabulary) {
  std::vector<std::string> tokens, learnt;
  for (char letter = 'a'; letter <= 'z'; ++letter) tokens.emplace_back(1, letter);
  std::vector<std::vector<int32_t>> symbols(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    for (const char letter : words[i].first) symbols[i].push_back(letter - 'a');
  }
  while (tokens.size() < vocabulary) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (size_t i = 0; i < words.size(); ++i) {
      for (size_t j = 0; j + 1 < symbols[i].size(); ++j) counts[{symbols[i][j], symbols[i][j + 1]}] += words[i].second;
    }
    // Of equal counts, max_element finds the first one, which has the lowest ids.
    const auto best = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == counts.end() || best->second < 2) break;
    const auto [left, right] = best->first;
    learnt.push_back(tokens[left] + " " + tokens[right]);
    for (std::vector<int32_t>& word : symbols) {
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] != left || word[i + 1] != right) continue;
        word[i] = static_cast<int32_t>(tokens.size());
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
    tokens.push_back(tokens[left] + tokens[right]);
  }
  return learnt;
}

TEST(LearnVocabularyTest, FollowsTheDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    Words words;
    for (uint32_t i = 1 + random() % 12; i > 0; --i) {
      std::string word;
      for (uint32_t j = random() % 12; j > 0; --j) word += static_cast<char>('a' + random() % 3);
      words.emplace_back(word, 1 + static_cast<int64_t>(random() % 4));
    }
    EXPECT_EQ(Learn(words, {.vocabulary = 56}), Slowly(words, 56));
  }
}

// The merges below are those that tokenizers 0.23.3 learns from the same words: trainers.BpeTrainer, with the alphabet
// a to z, after pre_tokenizers.WhitespaceSplit, from each word as often as its count.
TEST(LearnVocabularyTest, TheMostFrequentPairGoesFirst) {
  const Words words = {{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
  // es and st both occur 9 times; e has a lower id than s. Then est. Then lo and ow 7 times.
  EXPECT_EQ(Learn(words, {.vocabulary = 30}), (std::vector<std::string>{"e s", "es t", "l o", "lo w"}));
  EXPECT_EQ(Learn({{"ab", 3}, {"cd", 3}}, {.vocabulary = 27}), (std::vector<std::string>{"a b"}));
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
  EXPECT_EQ(Learn({{"aaaaa", 1}}, {.vocabulary = 100}), (std::vector<std::string>{"a a"}));  // aa aa a
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
