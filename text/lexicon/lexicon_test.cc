#include "weft/text/lexicon/lexicon.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/file.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const LexiconVocabularies& Vocabularies() {
  static const auto* const vocabularies =
      new LexiconVocabularies{.source = {"</s>", "▁Haus", "▁das", "NULL"}, .target = {"</s>", "▁the", "▁house", "a b"}};
  return *vocabularies;
}

std::string Path() { return testing::TempDir() + "/lexicon"; }

std::string ErrorOf(const std::string& text) {
  EXPECT_TRUE(WriteFile(Path(), {text}).ok());
  return std::string(ReadLexicon(Path(), Vocabularies()).status().message());
}

TEST(LexiconTest, ReadsAFileOfMarian) {
  ASSERT_TRUE(WriteFile(Path(), {"▁the ▁das 0.25\n▁house ▁Haus 1\n▁house ▁das 0.75\n▁the NULL 1e-3\n"}).ok());
  const absl::StatusOr<Lexicon> lexicon = ReadLexicon(Path(), Vocabularies());
  ASSERT_TRUE(lexicon.ok()) << lexicon.status();
  EXPECT_THAT(lexicon->Shortlist({2}, 1), ElementsAre(1, 2));  // ▁the of none, and ▁house, the best of ▁das
  EXPECT_THAT(lexicon->Shortlist({1}, 100), ElementsAre(1, 2));
  EXPECT_THAT(lexicon->Shortlist({1, 2}, 0), IsEmpty());
  EXPECT_THAT(lexicon->Shortlist({-1, 0, 99}, 100), ElementsAre(1));  // tokens without translations
}

TEST(LexiconTest, WhatIsWrittenIsRead) {
  const Lexicon lexicon = {.translations = {{}, {{2, 0.5f}, {0, 0.125f}}}, .of_none = {{1, 0.1f}}};
  ASSERT_TRUE(WriteLexicon(Path(), lexicon, Vocabularies()).ok());
  EXPECT_EQ(*ReadFile(Path()), "▁the NULL 0.1\n▁house ▁Haus 0.5\n</s> ▁Haus 0.125\n");
  const absl::StatusOr<Lexicon> read = ReadLexicon(Path(), Vocabularies());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->translations[1][1].target, 0);
  EXPECT_EQ(read->translations[1][1].probability, 0.125f);
  EXPECT_EQ(read->of_none[0].probability, 0.1f);
}

TEST(LexiconTest, ErrorsNameTheLine) {
  EXPECT_THAT(ErrorOf("▁the ▁das 0.5\n▁the ▁das\n"), HasSubstr("lexicon, line 2: wanted TARGET SOURCE PROBABILITY"));
  EXPECT_THAT(ErrorOf("▁the ▁das half\n"), HasSubstr("wanted TARGET SOURCE PROBABILITY"));
  EXPECT_THAT(ErrorOf("▁the ▁das 1.5\n"), HasSubstr("line 1: probability 1.5, wanted 0 .. 1"));
  EXPECT_THAT(ErrorOf("▁the ▁das nan\n"), HasSubstr("probability nan"));
  EXPECT_THAT(ErrorOf("▁das ▁das 1\n"), HasSubstr("line 1: the target vocabulary has no token '▁das'"));
  EXPECT_THAT(ErrorOf("▁the ▁the 1\n"), HasSubstr("the source vocabulary has no token '▁the'"));
  EXPECT_THAT(std::string(ReadLexicon(Path() + ".missing", Vocabularies()).status().message()), HasSubstr("missing"));
}

TEST(LexiconTest, TokensThatTheFormatCannotExpress) {
  const auto error = [](const Lexicon& lexicon) {
    return std::string(WriteLexicon(Path(), lexicon, Vocabularies()).message());
  };
  EXPECT_THAT(error({.translations = {}, .of_none = {{3, 1}}}), HasSubstr("cannot express the token 'a b'"));
  EXPECT_THAT(error({.translations = {{}, {}, {}, {{1, 1}}}, .of_none = {}}), HasSubstr("the token 'NULL'"));
}

}  // namespace
}  // namespace weft
