#include "weft/text/data/sentence_pairs.h"

#include <fstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/text/data/masking.h"
#include "weft/text/tokenizers/character_tokenizer.h"

namespace weft {
namespace {

using testing::ElementsAre;

constexpr PairTokens kTokens = {.begin = 301, .end = 302, .padding = 300};

std::string Write(const std::string& name, const std::string& contents) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << contents;
  return path;
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(ParallelTextTest, NamesBothCounts) {
  const std::string source = Write("s.txt", "a\nb\r\n"), target = Write("t.txt", "c\nd");
  const absl::StatusOr<ParallelText> text = ReadParallelText(source, target);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->source.lines, ElementsAre("a", "b"));
  EXPECT_THAT(text->target.lines, ElementsAre("c", "d"));
  const std::string message = Message(ReadParallelText(source, Write("u.txt", "c\nd\ne\n")).status());
  EXPECT_TRUE(absl::StrContains(message, "s.txt has 2 lines, but ")) << message;
  EXPECT_TRUE(absl::StrContains(message, "u.txt has 3: each line needs")) << message;
}

TEST(EncodeLineTest, NamesTheLineOfTheFile) {
  const ByteTokenizer tokenizer;
  const TextLines part = {"f.txt", {"", "three"}, /*numbers=*/{2, 3}};
  EXPECT_EQ(Message(EncodeLine(part, 0, tokenizer, {9}, 1).status()), "f.txt, line 2: the line is empty");
  EXPECT_TRUE(absl::StrContains(Message(EncodeLine(part, 1, tokenizer, {5}, 1).status()),
                                "f.txt, line 3: 5 tokens, but the context of 5 has room for 4"));
  EXPECT_THAT(*EncodeLine(part, 1, tokenizer, {5, /*truncate=*/true}, 1), ElementsAre('t', 'h', 'r', 'e'));
  EXPECT_EQ(Message(EncodeLine(part, 1, tokenizer, {2, true}, 2).status()),
            "a context of 2 has no room for text beside 2 special tokens");
}

class PairRowsTest : public testing::Test {
 protected:
  PairRowsTest() { rows_.Fill(pairs_, {1, 0}, /*rows=*/3, /*length=*/4, kTokens); }

  const std::vector<SentencePair> pairs_ = {{{1, 2, 3, 302}, {4}}, {{5, 302}, {6, 7, 8}}};
  PairRows rows_;
};

TEST_F(PairRowsTest, PutBeginBeforeWhatTheDecoderSeesAndEndBehindWhatItSays) {
  EXPECT_THAT(rows_.source, ElementsAre(5, 302, 300, 300, 1, 2, 3, 302, 300, 300, 300, 300));
  EXPECT_THAT(rows_.source_lengths, ElementsAre(2, 4, 0));
  EXPECT_THAT(rows_.input, ElementsAre(301, 6, 7, 8, 301, 4, 300, 300, 300, 300, 300, 300));
  EXPECT_THAT(rows_.target, ElementsAre(6, 7, 8, 302, 4, 302, -100, -100, -100, -100, -100, -100));
  EXPECT_EQ(rows_.sources, 6);
  EXPECT_EQ(rows_.targets, 6);
}

// The first row has no padding, so its last prediction is followed by the second row's begin token.
TEST_F(PairRowsTest, GuessesReplaceTheTokensOfTranslationsOnly) {
  const std::vector<int32_t> predicted = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
  rows_.Replace(predicted, /*probability=*/1, {.seed = 1});
  EXPECT_THAT(rows_.input, ElementsAre(301, 10, 11, 12, 301, 14, 300, 300, 300, 300, 300, 300));
}

TEST_F(PairRowsTest, NoiseLeavesBeginAndPadding) {
  AddNoise(absl::MakeSpan(rows_.input), /*probability=*/1, /*vocabulary=*/100, {.seed = 1}, rows_.is_text);
  for (size_t i = 0; i < rows_.input.size(); ++i) {
    EXPECT_EQ(rows_.input[i] < 100, rows_.is_text[i]) << i;
  }
  std::vector<int32_t> tokens(1000, 500);
  AddNoise(absl::MakeSpan(tokens), 0.1, 100, {.seed = 1});
  EXPECT_NEAR(static_cast<double>(std::count(tokens.begin(), tokens.end(), 500)), 900, 40);
  std::vector<int32_t> part(300, 500);
  AddNoise(absl::MakeSpan(part), 0.1, 100, {.seed = 1}, {}, /*first=*/200);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), tokens.begin() + 200)) << "a part has the noise of the whole";
}

}  // namespace
}  // namespace weft
