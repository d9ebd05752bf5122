#include "weft/text/tokenizers/character_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "weft/base/json.h"

namespace weft {
namespace {

TEST(CharacterTokenizerTest, NumbersCharactersByCodePoint) {
  const auto tokenizer = CharacterTokenizer::FromText("bé\na b");
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ(tokenizer->vocabulary_size(), 5);
  const auto ids = tokenizer->Encode("\n abé");
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(*tokenizer->Decode(*ids), "\n abé");
  EXPECT_EQ(*tokenizer->Decode({}), "");
  EXPECT_EQ(tokenizer->Decode({1, 5}).status().message(), "id 5, at position 1, is not in 0 .. 4");
}

TEST(CharacterTokenizerTest, NamesACharacterOutsideTheVocabulary) {
  const auto tokenizer = CharacterTokenizer::FromText("abc");
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ(tokenizer->Encode("abé").status().message(),
            "the vocabulary of 3 characters does not have U+00E9 'é', at byte 2");
  EXPECT_EQ(tokenizer->Encode("a\xFF").status().message(), "not UTF-8 at byte 1 (0xFF)");
}

TEST(CharacterTokenizerTest, RefusesATextThatHasNoCharacters) {
  EXPECT_FALSE(CharacterTokenizer::FromText("").ok());
  EXPECT_FALSE(CharacterTokenizer::FromText("a\xC3").ok());
}

TEST(CharacterTokenizerTest, SurvivesJson) {
  const auto tokenizer = CharacterTokenizer::FromText("\"\\\n\t é😀z");
  ASSERT_TRUE(tokenizer.ok());
  const auto again = CharacterTokenizer::FromJson(ParseJson(tokenizer->ToJson()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ToJson(), tokenizer->ToJson());
}

TEST(CharacterTokenizerTest, RefusesForeignJson) {
  for (const char* json : {"", "{", "[]", "7", "{}", R"({"type":"bpe","characters":["a"]})", R"({"type":"character"})",
                           R"({"type":"character","characters":[]})", R"({"type":"character","characters":["ab"]})",
                           R"({"type":"character","characters":["a",1]})", R"({"type":"character","characters":[""]})",
                           R"({"type":"character","characters":["a","a"]})"}) {
    EXPECT_FALSE(CharacterTokenizer::FromJson(ParseJson(json)).ok()) << json;
  }
}

}  // namespace
}  // namespace weft
