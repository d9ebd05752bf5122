#include "weft/text/data/classifier_input.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/text/tokenizers/tokenizer_json.h"
#include "weft/text/tokenizers/word_piece.h"

namespace weft {
namespace {

using testing::ElementsAre;

std::unique_ptr<WordPiece> Letters() {
  absl::StatusOr<Vocabulary> vocabulary =
      ReadVocabularyText("[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na\nb\n##b\n##c\n'\ndon\nt\n");
  return *WordPiece::Create(BertModel(*std::move(vocabulary)));
}

std::string Repeated(const char* word, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += word;
  return text;
}

// Expected counts are those of Hugging Face's tokenizers 0.23.3: enable_truncation(room + 3, strategy="longest_first"),
// then encode("a " * first, "b " * second).
TEST(ClassifierInputTest, PairsAreTruncatedLongestFirst) {
  const auto tokenizer = Letters();
  const struct {
    int64_t room;
    int first, second, kept_first, kept_second;
  } kCases[] = {{4, 1, 1, 1, 1}, {4, 2, 2, 2, 2}, {4, 4, 4, 2, 2}, {4, 5, 5, 2, 2}, {4, 7, 3, 2, 2}, {4, 3, 7, 2, 2},
                {4, 1, 9, 1, 3}, {4, 9, 1, 3, 1}, {4, 9, 2, 2, 2}, {4, 3, 2, 2, 2}, {5, 4, 4, 2, 3}, {5, 5, 5, 2, 3},
                {5, 7, 3, 3, 2}, {5, 3, 7, 2, 3}, {5, 1, 9, 1, 4}, {5, 9, 2, 3, 2}, {5, 2, 9, 2, 3}, {5, 3, 2, 3, 2}};
  for (const auto& [room, first, second, kept_first, kept_second] : kCases) {
    const absl::StatusOr<ModelInput> input =
        PairInput(Repeated("a ", first), Repeated("b ", second), *tokenizer, {.context = room + 3, .truncate = true});
    ASSERT_TRUE(input.ok()) << input.status();
    EXPECT_EQ(std::count(input->ids.begin(), input->ids.end(), 5), kept_first) << room << " " << first << " " << second;
    EXPECT_EQ(std::count(input->ids.begin(), input->ids.end(), 6), kept_second);
  }
  const ModelInput pair = *PairInput("a a", "b b b b b", *tokenizer, {.context = 8, .truncate = true});
  EXPECT_THAT(pair.ids, ElementsAre(1, 5, 5, 2, 6, 6, 6, 2));
  EXPECT_THAT(pair.segments, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  const ModelInput spelt = *PairInput("a [MASK]", "b [SEP]", *tokenizer, {.context = 8});
  EXPECT_THAT(spelt.ids, ElementsAre(1, 5, 4, 2, 6, 2, 2));
}

// Expected ids are those of tokenizers 0.23.3: encode([...], is_pretokenized=True). The third word, a formatting
// character, has no token.
TEST(ClassifierInputTest, FirstTokensOfWords) {
  const auto tokenizer = Letters();
  const std::vector<std::string> words = {"Don't", "abc", "\u200d", "b"};
  absl::StatusOr<WordsInput> input = InputOfWords(words, *tokenizer, {.context = 9});
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_THAT(input->input.ids, ElementsAre(1, 10, 9, 11, 5, 7, 8, 6, 2));
  EXPECT_THAT(input->first, ElementsAre(1, 4, -1, 7));
  input = InputOfWords(words, *tokenizer, {.context = 7, .truncate = true});
  EXPECT_THAT(input->input.ids, ElementsAre(1, 10, 9, 11, 5, 7, 2));
  EXPECT_THAT(input->first, ElementsAre(1, 4, -1, -1));
}

TEST(ClassifierInputTest, SaysWhatDoesNotFit) {
  const auto tokenizer = Letters();
  const struct {
    absl::Status status;
    std::string error;
  } kCases[] = {
      {TextInput("a a a", *tokenizer, {.context = 4}).status(), "3 tokens, but the context of 4 has room for 2"},
      {TextInput("a", *tokenizer, {.context = 2}).status(), "a context of 2 has no room for text beside 2"},
      {TextInput("", *tokenizer, {.context = 4}).status(), "there is no text"},
      {PairInput("a a", "a", *tokenizer, {.context = 5}).status(), "3 tokens, but the context of 5 has room for 2"},
      {PairInput("a", " ", *tokenizer, {.context = 5}).status(), "the second text of the pair is empty"},
      {PairInput("a", "b", *tokenizer, {.context = 4, .truncate = true}).status(), "no room for a pair of texts"},
      {InputOfWords({"a", "abb"}, *tokenizer, {.context = 5}).status(), "4 tokens, but the context of 5"},
      {InputOfWords({"\u200d"}, *tokenizer, {.context = 5}).status(), "there is no text"},
  };
  for (const auto& [status, error] : kCases) {
    EXPECT_TRUE(absl::StrContains(status.message(), error)) << status << "; wanted: " << error;
  }
}

}  // namespace
}  // namespace weft
