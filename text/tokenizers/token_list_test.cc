#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Tokenizer> List(absl::string_view file) {
  absl::StatusOr<std::unique_ptr<Tokenizer>> list = ReadTokenList(file);
  EXPECT_TRUE(list.ok()) << list.status();
  return *std::move(list);
}

TEST(TokenListTest, CharactersAreTokensIfAllTokensAre) {
  const auto list = List("<blank>\n<s>\n</s>\na\n\xC3\xA9\n");
  EXPECT_EQ(list->vocabulary_size(), 6);
  EXPECT_THAT(*list->Encode("a\xC3\xA9 xa"), ElementsAre(3, 4, 5, 3));
  EXPECT_EQ(*list->Decode({1, 3, 4, 5, 2}), "a\xC3\xA9<unk>");
  EXPECT_EQ(list->special_tokens().end, 2);
}

TEST(TokenListTest, WordsAreTokensElse) {
  const auto list = List("<unk>\n<s>\n</s>\nab\nc");
  EXPECT_EQ(list->vocabulary_size(), 5);
  EXPECT_THAT(*list->Encode(" ab c  abc </s>"), ElementsAre(3, 4, 0, 2));
  EXPECT_THAT(*list->Encode(" ab c  abc </s>", /*special=*/false), ElementsAre(3, 4, 0, 0));
  EXPECT_EQ(*list->Decode({3, 4, 3}), "ab c ab");
}

TEST(TokenListTest, LinesMayEndAsWindowsEndsThem) {
  const auto list = List("<s>\r\n</s>\r\na\r\n\xC3\xA9\r\n");
  EXPECT_EQ(list->vocabulary_size(), 5);
  EXPECT_THAT(*list->Encode("a\xC3\xA9"), ElementsAre(2, 3));
  EXPECT_EQ(*list->Decode({2, 3}), "a\xC3\xA9");
  EXPECT_EQ(list->special_tokens().begin, 0);
}

TEST(TokenListTest, SaysWhatIsWrong) {
  EXPECT_THAT(std::string(ReadTokenList("a\nb\na\n").status().message()), HasSubstr("'a' occurs twice"));
  EXPECT_THAT(std::string(ReadTokenList("a\xFF").status().message()), HasSubstr("not UTF-8 at byte 1"));
  EXPECT_THAT(std::string(List("a\n")->Encode("a\xFF").status().message()), HasSubstr("not UTF-8 at byte 1"));
}

}  // namespace
}  // namespace weft
