#include "weft/text/subword_bpe.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/core/file.h"

namespace weft {
namespace {

TEST(SubwordBpeTest, LearnsAndApplies) {
  const auto merges = LearnSubwordMerges("low low low lower lower\nnewer  newer newer\r\n new", 5);
  ASSERT_TRUE(merges.ok()) << merges.status();
  EXPECT_EQ(WriteSubwordMerges(*merges), "#version: 0.2\nw e\nwe r</w>\nl o\nn e\nne wer</w>\n");
  const auto bpe = SubwordBpe::Create(*merges);
  ASSERT_TRUE(bpe.ok()) << bpe.status();
  EXPECT_EQ(*bpe->Apply(" lower  newer low new xé\n"), "lo@@ wer newer lo@@ w ne@@ w x@@ é");
  EXPECT_EQ(*bpe->Apply(""), "");
  EXPECT_EQ(*bpe->Split("lower"), (std::vector<std::string>{"lo", "wer"}));
  EXPECT_EQ(*bpe->Split(""), std::vector<std::string>());
}

TEST(SubwordBpeTest, RefusesWhatCannotBeUsed) {
  const struct {
    const char *file, *message;
  } rows[] = {
      {"", "line 1: '' is not \"#version: 0.2\""},
      {"a b\n", "line 1: 'a b' is not \"#version: 0.2\""},
      {"#version: 0.2\na b\nab\n", "line 3: 'ab' is not two tokens with a space between them"},
      {"#version: 0.2\na b\xFF\n", "line 2: not UTF-8 at byte 3 (0xFF)"},
  };
  for (const auto& row : rows) EXPECT_EQ(ReadSubwordMerges(row.file).status().message(), row.message);
  EXPECT_EQ(SubwordBpe::Create({{"a", "b"}, {"c", "d"}, {"a", "b"}}).status().message(),
            "merge 2, 'a' 'b': it occurs twice");
  EXPECT_EQ(LearnSubwordMerges("ab\xFF", 1).status().message(), "not UTF-8 at byte 2 (0xFF)");
  EXPECT_EQ(SubwordBpe::Create({})->Apply("ab \xFF").status().message(), "not UTF-8 at byte 3 (0xFF)");
}

std::string Data(const std::string& name) {
  const auto file = ReadFile(absl::StrCat(std::getenv("WEFT_DATA"), "/subword-nmt-bpe/", name));
  EXPECT_TRUE(file.ok()) << file.status();
  return file.value_or("");
}

TEST(SubwordBpeTest, LearnsAndAppliesWhatItsAuthorsProgramDoes) {
  if (std::getenv("WEFT_DATA") == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  const std::string corpus = Data("corpus.en");
  const auto merges = LearnSubwordMerges(corpus, 1000);
  ASSERT_TRUE(merges.ok()) << merges.status();
  EXPECT_EQ(WriteSubwordMerges(*merges), Data("bpe.ref"));
  EXPECT_EQ(*ReadSubwordMerges(Data("bpe.ref")), *merges);
  const auto bpe = SubwordBpe::Create(*merges);
  ASSERT_TRUE(bpe.ok()) << bpe.status();
  const std::vector<std::string> lines = absl::StrSplit(corpus, '\n'),
                                 expected = absl::StrSplit(Data("corpus.bpe.ref.en"), '\n');
  ASSERT_EQ(lines.size(), expected.size());
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(*bpe->Apply(lines[i]), expected[i]) << "line " << i + 1;
}

}  // namespace
}  // namespace weft
