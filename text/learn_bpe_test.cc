#include "weft/text/learn_bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace weft {
namespace {

CountedWord Letters(const std::string& word, int64_t count) {
  CountedWord counted = {.count = count};
  for (const char letter : word) counted.symbols.emplace_back(1, letter);
  return counted;
}

// The definition: counts all pairs again for each merge.
std::vector<TokenPair> Slowly(std::vector<CountedWord> words, int64_t merges) {
  std::vector<TokenPair> learnt;
  while (static_cast<int64_t>(learnt.size()) < merges) {
    std::map<TokenPair, int64_t> counts;
    for (const CountedWord& word : words) {
      for (size_t i = 0; i + 1 < word.symbols.size(); ++i) counts[{word.symbols[i], word.symbols[i + 1]}] += word.count;
    }
    std::pair<int64_t, TokenPair> best = {1, {}};
    for (const auto& [pair, count] : counts) best = std::max(best, {count, pair});
    if (best.first < 2) break;
    learnt.push_back(best.second);
    for (CountedWord& word : words) {
      for (size_t i = 0; i + 1 < word.symbols.size(); ++i) {
        if (TokenPair(word.symbols[i], word.symbols[i + 1]) != best.second) continue;
        word.symbols[i] += word.symbols[i + 1];
        word.symbols.erase(word.symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return learnt;
}

TEST(LearnMergesTest, TheMostFrequentPairGoesFirst) {
  EXPECT_EQ(
      LearnMerges({Letters("low", 5), Letters("lower", 2), Letters("newest", 6), Letters("widest", 3)}, {.merges = 4}),
      (std::vector<TokenPair>{{"s", "t"}, {"e", "st"}, {"o", "w"}, {"l", "ow"}}));
  EXPECT_EQ(LearnMerges({Letters("ab", 3), Letters("cd", 3)}, {.merges = 1}), (std::vector<TokenPair>{{"c", "d"}}));
  EXPECT_EQ(LearnMerges({Letters("ab", 3), Letters("cd", 1)}, {}), (std::vector<TokenPair>{{"a", "b"}}));
  EXPECT_EQ(LearnMerges({Letters("aaaaa", 1)}, {}), (std::vector<TokenPair>{{"a", "a"}}));  // aa aa a
  EXPECT_EQ(LearnMerges({}, {}), std::vector<TokenPair>());
}

TEST(LearnMergesTest, FollowsTheDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<CountedWord> words;
    for (uint32_t i = 1 + random() % 12; i > 0; --i) {
      std::string word;
      for (uint32_t j = random() % 12; j > 0; --j) word += static_cast<char>('a' + random() % 3);
      words.push_back(Letters(word, 1 + static_cast<int64_t>(random() % 4)));
    }
    EXPECT_EQ(LearnMerges(words, {.merges = 30}), Slowly(words, 30));
  }
}

TEST(LearnByteLevelBpeTest, MakesATokenizerOfTheSizeAskedFor) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "the " + std::to_string(i * i) + " cats of the house, naïve ones; ";
  const auto model = LearnByteLevelBpe(text, {.vocabulary = 320, .special = {"<pad>", "<s>", "</s>"}});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->vocabulary.size(), 320);
  EXPECT_EQ(model->vocabulary.token('a'), "a");
  EXPECT_EQ(model->vocabulary.token(317), "<pad>");
  const auto tokenizer = ByteLevelBpe::Create(*model);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->special_tokens().padding, 317);
  EXPECT_EQ((*tokenizer)->special_tokens().begin, 318);
  EXPECT_EQ((*tokenizer)->special_tokens().end, 319);
  EXPECT_EQ((*tokenizer)->Encode(" the naïve house")->size(), 3);
  EXPECT_EQ(*(*tokenizer)->Decode(*(*tokenizer)->Encode("日本 the x")), "日本 the x");
}

TEST(LearnByteLevelBpeTest, StopsWhenNoPairIsThereTwice) {
  const auto model = LearnByteLevelBpe("ab ab", {.vocabulary = 1000});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->merges, (std::vector<TokenPair>{{"a", "b"}}));
  EXPECT_EQ(model->vocabulary.size(), 258);
}

TEST(LearnByteLevelBpeTest, RefusesWhatCannotBeLearnt) {
  EXPECT_EQ(LearnByteLevelBpe("a", {.vocabulary = 256}).status().message(),
            "a vocabulary of 256 has no room for 256 bytes and 1 special tokens");
  EXPECT_EQ(LearnByteLevelBpe("a\xFF", {.vocabulary = 300}).status().message(), "not UTF-8 at byte 1 (0xFF)");
  EXPECT_FALSE(LearnByteLevelBpe("a", {.vocabulary = 300, .special = {"<s>", "<s>"}}).ok());
}

}  // namespace
}  // namespace weft
