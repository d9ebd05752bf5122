// The expected words are those of Python's str.split, and the lowercase texts those of str.lower.
#include "weft/text/measures/ngrams.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Words = std::vector<absl::string_view>;

TEST(NGramsTest, SplitsAtWhiteSpace) {
  EXPECT_EQ(SplitWords(""), Words());
  EXPECT_EQ(SplitWords(" \t\n"), Words());
  EXPECT_EQ(SplitWords("  two words "), (Words{"two", "words"}));
  EXPECT_EQ(SplitWords("a\x1F"
                       "b\u00A0c\u3000d\u0085"
                       "e"),
            (Words{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(SplitWords("caf\xE9 zero\u200Bwidth"), (Words{"caf\xE9", "zero\u200Bwidth"}));
}

TEST(NGramsTest, Lowercases) {
  EXPECT_EQ(Lowercase("Ünder ÉTÉ \xC9 日本"), "ünder été \xC9 日本");
  EXPECT_EQ(Lowercase("İSTANBUL"), "i\u0307stanbul");
  EXPECT_EQ(Lowercase("ΟΔΥΣΣΕΥΣ, ΣΟΦΟΣ Σ 'ΟΣ' Σ. ΑΣ.Α ΑΣ. ΑΣ2 1Σ Ⅷ\u0301Σ"),
            "οδυσσευς, σοφος σ 'ος' σ. ασ.α ας. ας2 1σ ⅷ\u0301ς");
  // These have the property Other_Lowercase or Other_Uppercase, so Python's str.lower ends words after them.
  EXPECT_EQ(Lowercase("ªΣ ºΣ \U0001F130Σ \U0001F169Σ \U0001F189Σ"), "ªς ºς \U0001F130ς \U0001F169ς \U0001F189ς");
}

TEST(NGramsTest, CountsNGrams) {
  const UnitLine words = JoinWords({{"to", "be", "or", "not", "to", "be"}});
  EXPECT_EQ(words.text, "to be or not to be");
  const NGramCounts pairs = CountNGrams(words, 2);
  EXPECT_EQ(pairs, (NGramCounts{{"to be", 2}, {"be or", 1}, {"or not", 1}, {"not to", 1}}));
  EXPECT_TRUE(CountNGrams(words, 7).empty());
  const UnitLine characters = JoinCharacters("é\xE9 é\xE9");
  EXPECT_EQ(CountNGrams(characters, 2), (NGramCounts{{"é\xE9", 2}, {"\xE9é", 1}}));
}

}  // namespace
}  // namespace weft
