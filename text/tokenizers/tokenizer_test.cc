#include "weft/text/tokenizers/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "weft/text/learn/learn_tokenizer.h"
#include "weft/text/tokenizers/bpe.h"
#include "weft/text/tokenizers/character_tokenizer.h"

namespace weft {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(TokenBytesTest, OfBytesAndCharacters) {
  EXPECT_THAT(TokenBytes(ByteTokenizer()), Each(1));
  EXPECT_THAT(TokenBytes(*CharacterTokenizer::FromText("a\n é€")), ElementsAre(1, 1, 1, 2, 3));
}

// Whatever the tokens are, those of a text have the text's bytes.
TEST(TokenBytesTest, OfByteLevelBpeAddUpToTheText) {
  const std::string text = "the thé, the thé\n the\n\n there €5 <|endoftext|> the the";
  BpeModel model = *LearnByteLevelBpe(text, {.vocabulary = 270});
  const auto tokenizer = *Bpe::Create(std::move(model));
  const std::vector<int32_t> bytes = TokenBytes(*tokenizer);
  int64_t sum = 0;
  const std::vector<int32_t> ids = *tokenizer->Encode(text, /*special=*/false);
  for (const int32_t id : ids) sum += bytes[static_cast<size_t>(id)];
  EXPECT_EQ(sum, text.size());
  EXPECT_EQ(bytes[static_cast<size_t>(*tokenizer->special_tokens().end)], 0);
}

}  // namespace
}  // namespace weft
