#include "weft/text/lexicon/lexicon.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"

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

// The lines with the target NULL and with unknown tokens are left out.
TEST(LexiconTest, ReadsAFileOfMarian) {
  const std::string text =
      "▁the ▁das 0.25\n▁the ▁das 0.125\n▁house ▁Haus 1\n▁house ▁das 0.75\nNULL ▁das 0.5\n▁the NULL 1e-3\n▁other ▁das "
      "1\n▁the ▁die 1\n";
  ASSERT_TRUE(WriteFile(Path(), {text}).ok());
  const absl::StatusOr<Lexicon> lexicon = ReadLexicon(Path(), Vocabularies());
  ASSERT_TRUE(lexicon.ok()) << lexicon.status();
  EXPECT_THAT(lexicon->Shortlist({2}, 1), ElementsAre(1, 2));  // ▁the of NULL, and ▁house of ▁das
  EXPECT_EQ(lexicon->translations[2].size(), 2);
  EXPECT_THAT(lexicon->Shortlist({1}, 100), ElementsAre(1, 2));
  EXPECT_THAT(lexicon->Shortlist({1, 2}, 0), IsEmpty());
  EXPECT_THAT(lexicon->Shortlist({-1, 0, 99}, 100), ElementsAre(1));  // tokens without translations
}

TEST(LexiconTest, WhatIsWrittenIsRead) {
  const Lexicon lexicon = {.translations = {{}, {{2, 0.5f}, {0, 0.125f}}}, .null_translations = {{1, 0.1f}}};
  EXPECT_EQ(*WriteLexicon(Path(), lexicon, Vocabularies()), 3);
  EXPECT_EQ(*ReadFile(Path()), "▁the NULL 0.1\n▁house ▁Haus 0.5\n</s> ▁Haus 0.125\n");
  const absl::StatusOr<Lexicon> read = ReadLexicon(Path(), Vocabularies());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->translations[1][1].target, 0);
  EXPECT_EQ(read->translations[1][1].probability, 0.125f);
  EXPECT_EQ(read->null_translations[0].probability, 0.1f);
}

TEST(LexiconTest, ErrorsNameTheLine) {
  EXPECT_THAT(ErrorOf("▁the ▁das 0.5\n▁the ▁das\n"), HasSubstr("lexicon, line 2: wanted TARGET SOURCE PROBABILITY"));
  EXPECT_THAT(ErrorOf("▁the ▁das half\n"), HasSubstr("wanted TARGET SOURCE PROBABILITY"));
  EXPECT_THAT(ErrorOf("▁the ▁das 1.5\n"), HasSubstr("line 1: probability 1.5, wanted 0 .. 1"));
  EXPECT_THAT(ErrorOf("▁the ▁das nan\n"), HasSubstr("probability nan"));
  EXPECT_THAT(ErrorOf("▁das ▁das 1\n▁the ▁the 1\n"),
              HasSubstr("lexicon: none of its 2 lines has a token of both vocabularies"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("none of its 0 lines"));
  EXPECT_THAT(std::string(ReadLexicon(Path() + ".missing", Vocabularies()).status().message()), HasSubstr("missing"));
}

TEST(LexiconTest, LeavesOutTokensThatTheFormatCannotExpress) {
  const Lexicon lexicon = {.translations = {{}, {}, {{1, 1}}, {{1, 1}}}, .null_translations = {{3, 0.5f}, {2, 0.5f}}};
  EXPECT_EQ(*WriteLexicon(Path(), lexicon, Vocabularies()), 2);
  EXPECT_EQ(*ReadFile(Path()), "▁house NULL 0.5\n▁the ▁das 1\n");
  EXPECT_EQ(WriteLexicon(Path(), lexicon, Vocabularies(), IfThere::kFail).status().code(),
            absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace weft
