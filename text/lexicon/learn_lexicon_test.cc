#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/text/lexicon/lexicon.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

// The standard example of IBM Model 1. Sources: 0 das, 1 Haus, 2 Buch, 3 ein. Targets: 0 the, 1 house, 2 book, 3 a.
std::vector<SentencePair> Pairs() { return {{{0, 1}, {0, 1}}, {{0, 2}, {0, 2}}, {{3, 2}, {3, 2}}}; }

// Koehn ("Statistical machine translation", 2010, figure 4.4) gives the probabilities without the NULL word. With it
// they differ, but each source token has the same most likely translation.
TEST(LearnLexiconTest, TheMostLikelyTranslationsAreRight) {
  const std::vector<SentencePair> pairs = Pairs();
  const Lexicon lexicon = LearnLexicon(pairs, {.source_vocabulary = 5, .iterations = 20});
  ASSERT_EQ(lexicon.translations.size(), 5);
  EXPECT_EQ(lexicon.translations[0][0].target, 0);
  EXPECT_EQ(lexicon.translations[1][0].target, 1);
  EXPECT_EQ(lexicon.translations[2][0].target, 2);
  EXPECT_EQ(lexicon.translations[3][0].target, 3);
  EXPECT_TRUE(lexicon.translations[4].empty());  // a token that no sentence has
}

TEST(LearnLexiconTest, OneIterationByHand) {
  const std::vector<SentencePair> pairs = {{{0}, {0, 1}}, {{0}, {0}}};
  const Lexicon lexicon = LearnLexicon(pairs, {.source_vocabulary = 1, .iterations = 1});
  // Each target translates source 0 and the NULL word with probability 1/2. So target 0 counts 1, and target 1 1/2.
  ASSERT_EQ(lexicon.translations[0].size(), 2);
  EXPECT_EQ(lexicon.translations[0][0].target, 0);
  EXPECT_FLOAT_EQ(lexicon.translations[0][0].probability, 2.0f / 3);
  EXPECT_FLOAT_EQ(lexicon.translations[0][1].probability, 1.0f / 3);
  EXPECT_FLOAT_EQ(lexicon.null_translations[0].probability, 2.0f / 3);
}

TEST(LearnLexiconTest, KeepsTheBestAndBreaksTiesById) {
  const std::vector<SentencePair> pairs = {{{0}, {5, 3, 4, 3}}};
  const Lexicon lexicon = LearnLexicon(pairs, {.source_vocabulary = 1, .max_translations = 2});
  EXPECT_THAT(lexicon.Shortlist({0}, 2), ElementsAre(3, 4));
  EXPECT_EQ(lexicon.translations[0].size(), 2);
}

}  // namespace
}  // namespace weft
